#include "models/training/plan/layout_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "models/training/plan/activation_calls.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/host_update.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/plan/step_start.h"
#include "models/training/plan/weight_sharing.h"

namespace lambcast {
namespace {

using parallel::Axis;
using parallel::AxisSet;
using parallel::Sharding;

class LayoutWriter {
 public:
  LayoutWriter(const TrainingPlan& training, const DistinctStep& step)
      : training_(training),
        step_(step),
        how_(*training.parallelism),
        grid_(parallel::dense_grid(how_.layout)),
        contents_(contents_of(training)),
        owners_(summing(owners_of(how_, training.model->experts > 0), training.exchange)),
        replicas_(owners_.front().replicas),
        shards_(owners_.front().shards),
        tensors_(optimized_tensors(*training.model, how_.layout)),
        sliced_(parallel::sliced_parameters(*training.model, how_.layout).total()),
        decaying_(decaying_share(optimizer_groups(*training.model),
                                 training.recipe.weight_decay > 0, false)) {
    plan_.seq_len = step.seq_len;
    plan_.rank_classes = how_.layout.pp;
    last_.resize(static_cast<std::size_t>(how_.layout.pp));
  }

  StepPlan write() {
    plan_.pipeline = pipeline_plan();
    for (int s = 0; s < how_.layout.pp; ++s) passes_and_reduction(s);
    if (plan_.pipeline->synchronised) barrier();
    for (int s = 0; s < how_.layout.pp; ++s) finish(s);
    return std::move(plan_);
  }

 private:
  // --- the passes ---

  PipelinePlan pipeline_plan() const {
    PipelinePlan plan = computation_of(training_, step_.seq_len);
    const parallel::ParallelLayout& layout = how_.layout;
    const bool zero_bubble = parallel::splits_backward(how_.schedule);
    const bool overlappable = layout.virtual_stages > 1 || zero_bubble;
    plan.transfers = how_.framework.overlaps_sends && overlappable ? parallel::Transfers::overlapped
                                                                   : parallel::Transfers::exposed;
    plan.synchronised = !zero_bubble;
    double largest = 0;
    for (const auto& chunk : contents_.parameters) largest = std::max(largest, chunk.total());
    plan.first_bucket = 1 / static_cast<double>(bucket_count(training_, largest));
    for (int s = 0; s < layout.pp; ++s) plan.places.push_back(place_of(s));
    plan.tensor_overlap = how_.framework.tensor_overlap;
    plan.dtensor = how_.framework.dtensor;
    plan_activations(plan, training_, grid_);
    share_weights(plan, *training_.model, how_, contents_.parameters,
                  summing(owners_of(how_, training_.model->experts > 0, {}), training_.exchange),
                  wire_bytes());
    if (exchanges_gradients(training_) && sites() == 1) {
      plan.gradients_reduce.clear();
      plan.outer_gradients_reduce.clear();
      plan.expert_gradients_scatter.reset();
    }
    return plan;
  }

  Place place_of(int stage) const {
    parallel::Coordinates coordinates{};
    coordinates[static_cast<std::size_t>(Axis::pp)] = stage;
    const int rank = parallel::rank_of(grid_, coordinates);
    return {rank / grid_.gpus_per_node, rank % grid_.gpus_per_node};
  }

  // --- operations ---

  // A collective is placed at its stage; a collective of several stages, at the first stage.
  enum class Among { stage, stages };

  OpId add(int stage, std::string name, Category part, Stream stream, Work work,
           std::vector<OpId> after, std::int64_t times = 1, Among among = Among::stage) {
    if (Call* call = std::get_if<Call>(&work); call != nullptr && among == Among::stage)
      call->place = plan_.pipeline->places[static_cast<std::size_t>(stage)];
    plan_.ops.push_back(
        {std::move(name), part, stream, std::move(work), times, std::move(after), stage});
    return static_cast<OpId>(plan_.ops.size() - 1);
  }

  // Adds an operation after all previous operations of the stage.
  void then(int stage, std::string name, Category part, Stream stream, Work work,
            std::int64_t times = 1, Among among = Among::stage) {
    std::vector<OpId>& last = last_[static_cast<std::size_t>(stage)];
    last = {add(stage, std::move(name), part, stream, std::move(work), last, times, among)};
  }

  OpId segment(int stage, int index, std::vector<OpId> after) {
    return add(stage, fmt::format("passes, stretch {}", index), Category::forward, Stream::compute,
               StageWork{stage, index}, std::move(after));
  }

  const parallel::RankParameters& parameters_of(int stage, int chunk) const {
    const parallel::Pipeline& pipeline = plan_.pipeline->pipeline;
    return contents_.parameters[static_cast<std::size_t>(pipeline.position(stage, chunk))];
  }

  parallel::RankParameters parameters_of(int stage) const {
    parallel::RankParameters sum;
    for (int chunk = 0; chunk < plan_.pipeline->pipeline.chunks; ++chunk)
      sum += parameters_of(stage, chunk);
    return sum;
  }

  // Returns the number of sites of local steps; each sums its gradients in every step.
  int sites() const {
    const int ranks = site_ranks(training_.exchange);
    return ranks > 1 ? replicas_.ranks / ranks : 1;
  }

  bool is_shared() const { return how_.sharding != Sharding::none; }

  void passes_and_reduction(int stage) {
    const int chunks = plan_.pipeline->pipeline.chunks;
    const bool exchanges =
        (step_.sums_gradients() && exchanges_gradients(training_)) || hooks_momenta();
    const bool beside = exchanges && travels_beside(training_.exchange);
    const bool by_bucket = exchanges && training_.exchange.is_overlapped() && !beside;
    const bool overlaps =
        by_bucket || (how_.framework.overlaps_gradients && !waits_for_sums(training_));
    const bool sums = step_.sums_gradients() && replicas_.ranks > 1 && !exchanges;
    const bool reduces =
        by_bucket || (plan_.pipeline->gradients_reduce.empty() && (sites() > 1 || sums));
    std::vector<OpId> waits, reduced;
    beside_.clear();
    last_bucket_.clear();
    for (StepPart& part : step_start(training_, parameters_of(stage)))
      then(stage, std::move(part), 1);
    if (beside) weights_beside(stage, reduced);
    OpId passed = segment(stage, 0, first_weights(stage, waits));
    waits.push_back(passed);
    for (int i = 0; i < chunks; ++i) {
      passed = segment(stage, 1 + i, std::exchange(waits, {}));
      waits = {passed};
      if (reduces && overlaps)
        for (const Owners& owners : owners_)
          reduce(stage, owners, parameters_of(stage, chunks - 1 - i), i + 1 == chunks, passed,
                 reduced);
    }
    passed = segment(stage, 1 + chunks, {passed});
    for (const auto& [slowdown, times] : beside_)
      passed = add(stage, "kernels beside collectives", Category::backward, Stream::compute,
                   slowdown, {passed}, times);
    reduced.push_back(passed);
    last(stage) = reduced;
    if (reduces && !overlaps) then_reduce(stage);
    for (StepPart& part : last_bucket_) then(stage, std::move(part), 1);
    if (exchanges && !by_bucket && !beside) exchange(stage);
  }

  // Gathers the first bucket of the last step's weights before the passes begin, and the other
  // buckets during them (Megatron-LM core/distributed, overlap_param_gather).
  std::vector<OpId> first_weights(int stage, std::vector<OpId>& beside) {
    const std::int64_t buckets = bucket_count(training_, parameters_of(stage).total());
    std::vector<OpId> first = last(stage);
    if (!gathers_weights() || !how_.framework.overlaps_weights) return first;
    for (StepPart& part : updated_weights(stage, " of the last step")) {
      Call* call = std::get_if<Call>(&part.work);
      if (call == nullptr) {
        first = {add(stage, part.name, part.part, Stream::compute, part.work, first)};
        continue;
      }
      call->bytes = call->bytes * (1.0 / static_cast<double>(buckets));
      first = {add(stage, part.name, part.part, Stream::communication, *call, first)};
      if (buckets == 1) continue;
      beside.push_back(
          add(stage, part.name, part.part, Stream::communication, *call, first, buckets - 1));
      beside_.emplace_back(Slowdown{*call, true}, buckets - 1);
    }
    return first;
  }

  // Adds an exchange other than an uncompressed all-reduce after the passes, once for each micro
  // batch if gradients are shared.
  void exchange(int stage) {
    const bool each = how_.sharding == Sharding::gradients && sites() == 1;
    for (const Owners& owners : owners_)
      for (StepPart& part : gradient_exchange(training_, owners, parameters_of(stage)))
        then(stage, std::move(part), each ? training_.batch.gas : 1);
  }

  // Exchanges weights during the passes, which do not change them.
  void weights_beside(int stage, std::vector<OpId>& sent) {
    std::vector<OpId> after = last(stage);
    for (const Owners& owners : owners_)
      for (StepPart& part : gradient_exchange(training_, owners, parameters_of(stage)))
        after = {add(stage, std::move(part.name), Category::gradient_comm, Stream::communication,
                     std::move(part.work), std::move(after))};
    sent = after;
  }

  void then(int stage, StepPart part, std::int64_t times) {
    const bool call = std::holds_alternative<Call>(part.work);
    then(stage, std::move(part.name), part.part, call ? Stream::communication : Stream::compute,
         std::move(part.work), times);
  }

  std::vector<OpId>& last(int stage) { return last_[static_cast<std::size_t>(stage)]; }

  // Reduces a chunk's buckets as they fill; the last bucket of the stage follows its last pass.
  void reduce(int stage, const Owners& owners, const parallel::RankParameters& held, bool is_last,
              OpId ready, std::vector<OpId>& reduced) {
    std::int64_t buckets = bucket_count(training_, owners.of(held));
    const std::vector<StepPart> parts = bucket(owners, held, buckets);
    if (is_last) {
      last_bucket_.insert(last_bucket_.end(), parts.begin(), parts.end());
      --buckets;
    }
    if (buckets == 0) return;
    for (const StepPart& part : parts) {
      ready = add(stage, part.name, Category::gradient_comm, Stream::communication, part.work,
                  {ready}, buckets);
      if (const Call* call = std::get_if<Call>(&part.work))
        beside_.emplace_back(Slowdown{*call}, buckets);
    }
    reduced.push_back(ready);
  }

  // Returns the operations on one of `buckets` equal buckets: its reduction or its exchange.
  std::vector<StepPart> bucket(const Owners& owners, const parallel::RankParameters& held,
                               std::int64_t buckets) const {
    const auto count = static_cast<double>(buckets);
    if (hooks_momenta()) return momenta(owners.replicas, owners.of(held) / count);
    if (exchanges_gradients(training_) && training_.exchange.is_overlapped())
      return gradient_exchange(training_, owners, held, 1 / count);
    return gradient_sums(how_, owners, sites(), Bytes(owners.of(held) * wire_bytes() / count));
  }

  double wire_bytes() const { return gradient_bytes(training_); }
  bool hooks_momenta() const { return exchanges_momenta_in_hooks(training_, step_.kind); }

  // Without overlap, frameworks other than DeepSpeed keep gradients in one buffer.
  void then_reduce(int stage) {
    const parallel::RankParameters held = parameters_of(stage);
    for (const Owners& owners : owners_) {
      const double elements = owners.of(held);
      const auto buckets = how_.framework.in_buckets ? bucket_count(training_, elements) : 1;
      const double bytes = elements * wire_bytes() / static_cast<double>(buckets);
      for (StepPart& part : gradient_sums(how_, owners, sites(), Bytes(bytes)))
        then(stage, std::move(part), buckets);
    }
  }

  // --- the end of the step ---

  void barrier() {
    std::vector<OpId> all;
    std::vector<OpId> ends;  // last operations of the two stages that hold the tied weights
    for (int s = 0; s < how_.layout.pp; ++s) {
      whole(s);
      if (parameters_of(s).tied > 0) ends.insert(ends.end(), last(s).begin(), last(s).end());
    }
    for (int s = 0; s < how_.layout.pp; ++s) {
      tied(s, ends);
      all.insert(all.end(), last(s).begin(), last(s).end());
    }
    const ProcessGroup everyone = parallel::group(grid_, AxisSet::all());
    if (everyone.ranks == 1) return;
    const ProcessGroup group =
        is_shared() ? everyone : parallel::group(grid_, {Axis::tp, Axis::pp});
    OpId done = add(0, "all stages done", Category::bubble, Stream::communication, Wait{}, all);
    if (group.ranks > 1)
      done = add(0, "all_reduce norm and overflow", Category::gradient_comm, Stream::communication,
                 call(group, Op::all_reduce, 4), {done}, 2, Among::stages);
    for (int s = 0; s < how_.layout.pp; ++s) last(s) = {done};
  }

  // Sums gradients of norms, as tied() does for tied weights, within one copy of the model in every
  // step, independent of exchanges between replicas. DeepSpeed's pipeline reduces tied gradients
  // even if it reduces no others (runtime/pipe/engine.py, _exec_reduce_tied_grads).
  void whole(int stage) {
    if (!how_.sequence_parallel) return;
    const double bytes = parameters_of(stage).whole * how_.gradient_bytes();
    if (const auto sum = some(call(parallel::group(grid_, {Axis::tp}), Op::all_reduce, bytes)))
      then(stage, "all_reduce gradients of norms", Category::gradient_comm, Stream::communication,
           *sum);
  }

  void tied(int stage, const std::vector<OpId>& ends) {
    const double bytes = parameters_of(stage).tied * how_.gradient_bytes();
    if (bytes > 0 && how_.layout.pp > 1)
      last(stage) = {
          add(stage, "all_reduce tied embedding", Category::gradient_comm, Stream::communication,
              call(parallel::stage_pair(grid_, 0, how_.layout.pp - 1), Op::all_reduce, bytes), ends,
              1, Among::stages)};
  }

  std::vector<StepPart> updated_weights(int stage, const char* when) const {
    return gather_weights(owners_, parameters_of(stage), gathered_bytes(*training_.model, how_),
                          training_.exchange, when);
  }

  bool gathers_weights() const {
    return shards_.shard.ranks > 1 &&
           (how_.sharding == Sharding::optimizer || how_.sharding == Sharding::gradients);
  }

  // Under a pipeline, bf16 runs BF16_Optimizer, which has nearly the same passes as ZeRO's wrapper.
  Wrapper wrapper() const {
    const bool other = how_.layout.pp > 1 && training_.recipe.precision.weights != DataType::fp16;
    return other ? Wrapper::zero : training_.wrapper();
  }

  void finish(int stage) {
    double elements = 0;
    for (const Owners& owners : owners_)
      elements += owners.of(parameters_of(stage)) / (is_shared() ? owners.shards.shard.ranks : 1);
    if (how_.optimizer_on == OptimizerOn::host) {
      for (StepPart& part :
           host_update(elements, how_.sharding == Sharding::weights, training_.batch.gas,
                       std::min(how_.layout.gpus_per_node, training_.gpus)))
        then(stage, std::move(part), 1);
      gather_updated(stage);
      return;
    }
    const Kernels kernels = training_.kernels;
    const auto pass = [&](const char* name, const Passes& passes) {
      then(stage, name, Category::optimizer, Stream::compute,
           KernelWork{passes, elements, tensors_});
    };
    if (autocasts(how_))
      pass("unscale and clip", autocast_passes(training_.kernels));
    else if (wrapper() != Wrapper::none)
      pass("unscale, clip and copy",
           wrapper_passes(wrapper(), training_.optimizer(), kernels, training_.recipe.engine));
    // Norms of weights and updates of tensors that several ranks share: one call for all tensors.
    // An optimizer that sums them tensor by tensor has its calls in extras().
    const OptimizerModel& optimizer = model_of(training_.optimizer());
    if (optimizer.layerwise && optimizer.sums_per_tensor == 0)
      if (const auto norms = some(call(shards_.shard, Op::all_reduce, 2 * 4 * tensors_));
          norms && is_shared())
        then(stage, "all_reduce norms of tensors", Category::gradient_comm, Stream::communication,
             *norms);
    Passes update = update_passes(training_.optimizer(), step_.kind, kernels, decaying_);
    update.bytes_per_element -= how_.states.saved_traffic();
    pass("optimizer", update);
    extras(stage);
    if (compresses(step_.kind) && replicas_.ranks > 1 && !hooks_momenta())
      for (StepPart& part : momenta(replicas_, parameters_of(stage).total()))
        then(stage, std::move(part), 1);
    gather_updated(stage);
  }

  void gather_updated(int stage) {
    const double whole = persistent_weights(*training_.model, how_).all() * how_.weight_bytes;
    if (const auto gather = some(call(shards_.shard, Op::all_gather, whole)))
      then(stage, "all_gather weights that stay whole", Category::gradient_comm,
           Stream::communication, *gather);
    if (!gathers_weights() || how_.framework.overlaps_weights) return;
    for (StepPart& part : updated_weights(stage, "")) then(stage, std::move(part), 1);
  }

  // Adds work and calls of the update other than its passes (optimizer_state.h).
  void extras(int stage) {
    UpdateDivision division{parameters_of(stage).total() / sliced_,
                            is_shared() ? shards_.shard.ranks : 1, how_.layout.tp,
                            how_.sums_columns, training_.flattens()};
    division.matrices = whole_matrices(how_);
    const UpdateExtras of =
        update_extras(training_.optimizer(), step_.kind, training_.kernels, *training_.model,
                      division, how_.gradient_bytes(), training_.recipe.projection);
    for (const KernelWork& work : of.kernels)
      then(stage, "kernels of the small space", Category::optimizer, Stream::compute, work);
    for (const ProductWork& product : of.products)
      then(stage, "products of the optimizer", Category::optimizer, Stream::compute, product);
    for (const SharedCall& shared : of.calls) {
      const ProcessGroup group = shared.among == SharedCall::Among::shards
                                     ? shards_.shard
                                     : parallel::group(grid_, {Axis::tp});
      then(stage, shared.name, Category::gradient_comm, Stream::communication,
           call(group, shared.op, shared.bytes.value()), shared.times);
    }
  }

  std::vector<StepPart> momenta(const ProcessGroup& ranks, double elements) const {
    const ExchangeLevels levels = levels_of(training_.exchange, ranks);
    return compressed_allreduce(training_.optimizer(), training_.backend(), training_.kernels,
                                levels, padded_share(levels, elements), wire_bytes());
  }

  const TrainingPlan& training_;
  const DistinctStep& step_;
  const Parallelism& how_;
  parallel::RankGrid grid_;
  LayoutContents contents_;
  std::vector<Owners> owners_;  // owners of parameters outside experts, and of experts
  ProcessGroup replicas_;       // ranks with the same parameters outside experts
  ShardGroups shards_;
  double tensors_;  // number of tensors that unfused kernels are launched for
  double sliced_;   // parameters of the whole model
  DecayingShare decaying_;
  StepPlan plan_;
  std::vector<std::vector<OpId>> last_;  // by stage: operations that its next operation waits for
  // Calls that overlap the passes of the current stage, and operations on its last bucket after it.
  std::vector<std::pair<Slowdown, std::int64_t>> beside_;
  std::vector<StepPart> last_bucket_;
};

}  // namespace

StepPlan plan_layout_step(const TrainingPlan& training, const DistinctStep& step) {
  return LayoutWriter(training, step).write();
}

}  // namespace lambcast
