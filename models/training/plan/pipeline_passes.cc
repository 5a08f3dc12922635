#include "models/training/plan/pipeline_passes.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/training/plan/activation_calls.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/plan/step_start.h"
#include "models/training/plan/weight_sharing.h"

namespace lambcast {
namespace {

using parallel::Axis;
using parallel::Sharding;

// The passes of one stage.
class StagePassesWriter {
 public:
  StagePassesWriter(StepDraft& draft, int stage)
      : draft_(draft),
        how_(*draft.training.parallelism),
        ranks_(draft.ranks),
        operations_(draft.operations),
        stage_(stage),
        held_(draft.ranks.of(stage)) {}

  void write() {
    const int chunks = ranks_.pipeline.chunks;
    const bool exchanges = draft_.exchanges() || draft_.hooks_momenta();
    const bool beside = draft_.exchanges_beside();
    const bool by_bucket = draft_.exchanges_in_hooks();
    const bool overlaps =
        by_bucket || (how_.framework.overlaps_gradients && !waits_for_sums(draft_.training));
    const bool sums = draft_.step.sums_gradients() && ranks_.replicas().ranks > 1 && !exchanges;
    const bool reduces =
        by_bucket || (draft_.pipeline->gradients_reduce.empty() && (sites() > 1 || sums));
    std::vector<OpId> waits, reduced;
    for (StepPart& part : step_start(how_, draft_.training.optimizer(),
                                     draft_.training.model->adapters.has_value(), held_))
      then(std::move(part), 1);
    if (beside) weights_beside(reduced);
    OpId passed = segment(0, first_weights(waits));
    waits.push_back(passed);
    for (int i = 0; i < chunks; ++i) {
      passed = segment(1 + i, std::exchange(waits, {}));
      waits = {passed};
      if (reduces && overlaps)
        for (const Owners& owners : ranks_.owners)
          reduce(owners, ranks_.of(stage_, chunks - 1 - i), i + 1 == chunks, passed, reduced);
    }
    passed = segment(1 + chunks, {passed});
    for (const auto& [slowdown, times] : beside_)
      passed = add({"kernels beside collectives", Category::backward, slowdown}, Stream::compute,
                   {passed}, times);
    reduced.push_back(passed);
    operations_.last(stage_) = reduced;
    if (reduces && !overlaps) reduce_after_passes();
    for (StepPart& part : last_bucket_) then(std::move(part), 1);
    if (exchanges && !by_bucket && !beside) exchange();
  }

 private:
  OpId add(StepPart part, Stream stream, std::vector<OpId> after, std::int64_t times = 1) {
    return operations_.add(stage_, std::move(part), stream, std::move(after), times);
  }

  void then(StepPart part, std::int64_t times) { operations_.then(stage_, std::move(part), times); }

  OpId segment(int index, std::vector<OpId> after) {
    return add(
        {fmt::format("passes, stretch {}", index), Category::forward, StageWork{stage_, index}},
        Stream::compute, std::move(after));
  }

  int sites() const { return ranks_.sites(draft_.training.exchange); }

  // Gathers the first bucket of the last step's weights before the passes begin, and the other
  // buckets during them (Megatron-LM core/distributed, overlap_param_gather).
  std::vector<OpId> first_weights(std::vector<OpId>& beside) {
    const std::int64_t buckets = bucket_count(draft_.training, held_.total());
    std::vector<OpId> first = operations_.last(stage_);
    if (!how_.framework.overlaps_weights) return first;
    for (StepPart& part : updated_weights(draft_, stage_, " of the last step")) {
      Call* call = std::get_if<Call>(&part.work);
      if (call == nullptr) {
        first = {add(std::move(part), Stream::compute, first)};
        continue;
      }
      call->bytes = call->bytes * (1.0 / static_cast<double>(buckets));
      first = {add(part, Stream::communication, first)};
      if (buckets == 1) continue;
      beside.push_back(add(part, Stream::communication, first, buckets - 1));
      beside_.emplace_back(Slowdown{*call, true}, buckets - 1);
    }
    return first;
  }

  // Adds an exchange other than an uncompressed all-reduce after the passes, once for each micro
  // batch if gradients are shared.
  void exchange() {
    const bool each = how_.sharding == Sharding::gradients && sites() == 1;
    for (const Owners& owners : ranks_.owners)
      for (StepPart& part : gradient_exchange(draft_.training, owners, held_))
        then(std::move(part), each ? draft_.training.batch.gas : 1);
  }

  // Exchanges weights during the passes, which do not change them.
  void weights_beside(std::vector<OpId>& sent) {
    sent = operations_.last(stage_);
    for (const Owners& owners : ranks_.owners)
      for (StepPart& part : gradient_exchange(draft_.training, owners, held_))
        sent = {add({std::move(part.name), Category::gradient_comm, std::move(part.work)},
                    Stream::communication, std::move(sent))};
  }

  // Reduces a chunk's buckets as they fill; the last bucket of the stage follows its last pass.
  void reduce(const Owners& owners, const parallel::RankParameters& held, bool is_last, OpId ready,
              std::vector<OpId>& reduced) {
    std::int64_t buckets = bucket_count(draft_.training, owners.of(held));
    const std::vector<StepPart> parts = bucket(owners, held, buckets);
    if (is_last) {
      last_bucket_.insert(last_bucket_.end(), parts.begin(), parts.end());
      --buckets;
    }
    if (buckets == 0) return;
    for (const StepPart& part : parts) {
      ready = add({part.name, Category::gradient_comm, part.work}, Stream::communication, {ready},
                  buckets);
      if (const Call* call = std::get_if<Call>(&part.work))
        beside_.emplace_back(Slowdown{*call}, buckets);
    }
    reduced.push_back(ready);
  }

  // Returns the operations on one of `buckets` equal buckets: its reduction or its exchange.
  std::vector<StepPart> bucket(const Owners& owners, const parallel::RankParameters& held,
                               std::int64_t buckets) const {
    const auto count = static_cast<double>(buckets);
    if (draft_.hooks_momenta()) return draft_.momenta(owners.replicas, owners.of(held) / count);
    if (exchanges_gradients(draft_.training) && draft_.training.exchange.is_overlapped())
      return gradient_exchange(draft_.training, owners, held, 1 / count);
    return gradient_sums(how_, owners, sites(),
                         Bytes(owners.of(held) * gradient_bytes(draft_.training) / count));
  }

  // Without overlap, frameworks other than DeepSpeed keep gradients in one buffer. DeepSpeed copies
  // each bucket before and after its sum (gradient_reduction.h).
  void reduce_after_passes() {
    GradientReduction copies;
    if (draft_.training.runs_as_deepspeed()) copies = gradient_reduction(draft_.training);
    const auto copy = [&](const char* name, double bytes, std::int64_t times) {
      if (bytes > 0) then({name, Category::gradient_comm, MemoryWork{bytes}}, times);
    };
    for (const Owners& owners : ranks_.owners) {
      const double elements = owners.of(held_);
      const auto buckets = how_.framework.in_buckets ? bucket_count(draft_.training, elements) : 1;
      const double bucket = elements / static_cast<double>(buckets);
      std::vector<StepPart> sums =
          gradient_sums(how_, owners, sites(), Bytes(bucket * gradient_bytes(draft_.training)));
      if (sums.empty()) continue;
      copy("flatten bucket", copies.fill_bytes * bucket, buckets);
      for (StepPart& part : sums) then(std::move(part), buckets);
      copy("scale and copy back", copies.scale_bytes * bucket, buckets);
    }
  }

  StepDraft& draft_;
  const Parallelism& how_;
  const StageRanks& ranks_;
  StepOperations& operations_;
  int stage_;
  parallel::RankParameters held_;
  // Calls that overlap the passes, and operations on the last bucket after them.
  std::vector<std::pair<Slowdown, std::int64_t>> beside_;
  std::vector<StepPart> last_bucket_;
};

// Sums gradients of norms over tensor-parallel ranks, within one copy of the model in every step,
// independent of exchanges between replicas.
void sum_norms(StepDraft& draft, int stage) {
  const Parallelism& how = *draft.training.parallelism;
  if (!how.sequence_parallel) return;
  const double bytes = draft.ranks.of(stage).whole * how.gradient_bytes();
  if (const auto sum = some(call(draft.ranks.tensor_ranks(), Op::all_reduce, bytes)))
    draft.operations.then(stage, {"all_reduce gradients of norms", Category::gradient_comm, *sum});
}

// Sums the gradients of a tied embedding on the first and the last stage, within one copy of the
// model. DeepSpeed's pipeline does so even if it reduces no other gradients
// (runtime/pipe/engine.py, _exec_reduce_tied_grads).
void sum_tied(StepDraft& draft) {
  const Parallelism& how = *draft.training.parallelism;
  if (how.layout.pp == 1) return;
  std::vector<int> stages;
  std::vector<OpId> ends;
  for (int s = 0; s < how.layout.pp; ++s) {
    if (draft.ranks.of(s).tied == 0) continue;
    stages.push_back(s);
    const std::vector<OpId>& last = draft.operations.last(s);
    ends.insert(ends.end(), last.begin(), last.end());
  }
  for (const int s : stages) {
    const Call sum = call(parallel::stage_pair(draft.ranks.grid, 0, how.layout.pp - 1),
                          Op::all_reduce, draft.ranks.of(s).tied * how.gradient_bytes());
    draft.operations.last(s) = {
        draft.operations.add(s, {"all_reduce tied embedding", Category::gradient_comm, sum},
                             Stream::communication, ends, 1, StepOperations::Among::stages)};
  }
}

// Returns the micro batches of the step.
PipelinePlan pipeline_plan(const StepDraft& draft) {
  const Parallelism& how = *draft.training.parallelism;
  const StageRanks& ranks = draft.ranks;
  PipelinePlan plan = computation_of(draft.training, draft.step.seq_len);
  const bool zero_bubble = parallel::splits_backward(how.schedule);
  const bool overlappable = how.layout.virtual_stages > 1 || zero_bubble;
  plan.transfers = how.framework.overlaps_sends && overlappable ? parallel::Transfers::overlapped
                                                                : parallel::Transfers::exposed;
  plan.synchronised = !zero_bubble;
  double largest = 0;
  for (const auto& chunk : ranks.chunks) largest = std::max(largest, chunk.total());
  plan.first_bucket = 1 / static_cast<double>(bucket_count(draft.training, largest));
  plan.places = ranks.places();
  plan.tensor_overlap = how.framework.tensor_overlap;
  plan.dtensor = how.framework.dtensor;
  plan_activations(plan, draft.training, ranks.grid);
  share_weights(
      plan, *draft.training.model, how, ranks.chunks,
      summing(owners_of(how, draft.training.model->experts > 0, {}), draft.training.exchange),
      gradient_bytes(draft.training));
  if (exchanges_gradients(draft.training) && ranks.sites(draft.training.exchange) == 1) {
    plan.gradients_reduce.clear();
    plan.outer_gradients_reduce.clear();
    plan.expert_gradients_scatter.reset();
  }
  return plan;
}

}  // namespace

void add_pipeline_passes(StepDraft& draft) {
  draft.pipeline = pipeline_plan(draft);
  const int stages = draft.ranks.pipeline.stages;
  for (int s = 0; s < stages; ++s) StagePassesWriter(draft, s).write();
  if (!draft.pipeline->synchronised) return;
  for (int s = 0; s < stages; ++s) sum_norms(draft, s);
  sum_tied(draft);
}

std::vector<StepPart> updated_weights(const StepDraft& draft, int stage, const char* when) {
  const Parallelism& how = *draft.training.parallelism;
  const bool states_only =
      how.sharding == Sharding::optimizer || how.sharding == Sharding::gradients;
  if (draft.ranks.shards().shard.ranks == 1 || !states_only) return {};
  return gather_weights(draft.ranks.owners, draft.ranks.of(stage),
                        gathered_bytes(*draft.training.model, how), draft.training.exchange, when);
}

}  // namespace lambcast
