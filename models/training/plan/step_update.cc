#include "models/training/plan/step_update.h"

#include <algorithm>
#include <functional>
#include <map>

#include "models/training/plan/buffers.h"
#include "models/training/plan/host_update.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/plan/optimizer_cost.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/plan/pipeline_passes.h"
#include "models/training/plan/weight_sharing.h"

namespace lambcast {
namespace {

using parallel::Axis;
using parallel::AxisSet;
using parallel::Sharding;

// Adds the overflow flag, if the wrapper always checks all ranks or if ranks sum no gradients.
void overflow_flag(StepDraft& draft) {
  const Wrapper wrapper = draft.training.wrapper();
  if (draft.training.gpus == 1 || !is_fp16(wrapper)) return;
  const auto ask = [&](const char* name, double bytes) {
    draft.operations.then(
        0, {name, Category::gradient_comm, call(all_ranks(draft.training), Op::all_reduce, bytes)});
  };
  if (asks_all_for_overflow(wrapper, draft.training.optimizer(), draft.training.kernels,
                            draft.training.recipe.engine)) {
    ask("all_reduce overflow flag", 4);
    ask("barrier", 0);
  } else if (!draft.step.sums_gradients() && site_ranks(draft.training.exchange) <= 1) {
    ask("all_reduce overflow flag", 1);
  }
}

// Adds a barrier of all stages and, among several ranks, the all_reduces of norm and overflow.
void norm_and_overflow(StepDraft& draft) {
  const Parallelism& how = *draft.training.parallelism;
  const ProcessGroup everyone = parallel::group(draft.ranks.grid, AxisSet::all());
  if (everyone.ranks == 1) return;
  // Replicas have the same norm and flag if they have summed their gradients.
  const bool differ = draft.training.runs_as_deepspeed() && is_fp16(draft.training.wrapper()) &&
                      !draft.step.sums_gradients() && site_ranks(draft.training.exchange) <= 1;
  const bool all_ranks = differ || how.sharding != Sharding::none;
  const ProcessGroup group =
      all_ranks ? everyone : parallel::group(draft.ranks.grid, {Axis::tp, Axis::pp});
  StepOperations& operations = draft.operations;
  std::vector<OpId> all;
  for (int s = 0; s < how.layout.pp; ++s)
    all.insert(all.end(), operations.last(s).begin(), operations.last(s).end());
  OpId done =
      operations.add(0, {"all stages done", Category::bubble, Wait{}}, Stream::communication, all);
  if (group.ranks > 1)
    done = operations.add(
        0,
        {"all_reduce norm and overflow", Category::gradient_comm, call(group, Op::all_reduce, 4)},
        Stream::communication, {done}, 2, StepOperations::Among::stages);
  for (int s = 0; s < how.layout.pp; ++s) operations.last(s) = {done};
}

// Exchanges the momenta of a 1-bit optimizer.
void exchange_momenta(StepDraft& draft, int stage) {
  const bool exchanges = compresses(draft.step.kind) && draft.ranks.replicas().ranks > 1;
  if (!exchanges || draft.hooks_momenta()) return;
  const ProcessGroup& among = draft.ranks.replicas();
  if (draft.training.parallelism) {
    for (StepPart& part : draft.momenta(among, draft.ranks.of(stage).total()))
      draft.operations.then(stage, std::move(part));
    return;
  }
  std::vector<std::pair<std::int64_t, std::int64_t>> calls;  // padded elements and number of calls
  std::map<std::int64_t, std::int64_t, std::greater<>> equal;
  for (const std::int64_t padded : compressed_buffers(draft.training)) {
    ++equal[padded];
    calls.emplace_back(padded, 1);
  }
  if (!draft.training.expand) calls.assign(equal.begin(), equal.end());
  for (const auto& [padded, times] : calls)
    for (StepPart& part : draft.buffer(among, padded))
      draft.operations.then(stage, std::move(part), times);
}

void gather_updated(StepDraft& draft, int stage) {
  const std::optional<Parallelism>& how = draft.training.parallelism;
  if (!how) {
    if (draft.training.shards() == 1) return;
    const double element = bytes_of(draft.training.recipe.precision.weights);
    for (const std::int64_t elements : flat_groups(draft.training))
      draft.operations.then(stage, {"all_gather weights", Category::gradient_comm,
                                    call(all_ranks(draft.training), Op::all_gather,
                                         static_cast<double>(elements) * element)});
    return;
  }
  const double whole = persistent_weights(*draft.training.model, *how).all() * how->weight_bytes;
  if (const auto gather = some(call(draft.ranks.shards().shard, Op::all_gather, whole)))
    draft.operations.then(stage,
                          {"all_gather weights that stay whole", Category::gradient_comm, *gather});
  if (how->framework.overlaps_weights) return;
  for (StepPart& part : updated_weights(draft, stage, ""))
    draft.operations.then(stage, std::move(part));
}

// The update of one stage.
class UpdateWriter {
 public:
  UpdateWriter(StepDraft& draft, int stage)
      : draft_(draft),
        how_(draft.training.parallelism ? &*draft.training.parallelism : nullptr),
        ranks_(draft.ranks),
        stage_(stage),
        held_(draft.ranks.of(stage)),
        groups_(optimizer_groups(*draft_.training.model)) {
    for (const Owners& owners : ranks_.owners)
      elements_ += owners.of(held_) / owners.shards.shard.ranks;
  }

  void write() {
    if (how_ != nullptr && how_->optimizer_on == OptimizerOn::host) {
      for (StepPart& part :
           host_update(elements_, how_->sharding == Sharding::weights, draft_.training.batch.gas,
                       std::min(how_->layout.gpus_per_node, draft_.training.gpus)))
        then(std::move(part));
    } else if (draft_.step.kind != StepKind::dry_run) {
      update();
    }
  }

 private:
  void then(StepPart part, std::int64_t times = 1) {
    draft_.operations.then(stage_, std::move(part), times);
  }

  void pass(const char* name, const Passes& passes, double elements, double tensors,
            std::int64_t times = 1) {
    then({name, Category::optimizer, KernelWork{passes, elements, tensors}}, times);
  }

  // Returns the number of tensors of the rank, for each of which unfused kernels are launched.
  double tensors() const {
    return how_ != nullptr ? optimized_tensors(*draft_.training.model, how_->layout)
                           : static_cast<double>(optimized_tensor_count(*draft_.training.model));
  }

  // Returns the number of pieces that the optimizer gets.
  double pieces() const {
    return draft_.training.has_flat_groups() ? static_cast<double>(groups_.size()) : tensors();
  }

  void update() {
    wrap();
    sum_norms_of_tensors();
    Passes passes =
        update_passes(draft_.training.optimizer(), draft_.step.kind, draft_.training.kernels,
                      decaying_share(groups_, draft_.training.recipe.weight_decay > 0,
                                     draft_.training.has_flat_groups()));
    if (how_ != nullptr) passes.bytes_per_element -= how_->states.saved_traffic();
    const int copies = copies_with_blocks();
    pass("optimizer", passes, elements_ / copies, pieces());
    extras();
    // Weights plus the gathered directions, over all tensors at once.
    if (copies > 1) pass("add search directions", {12, 1, 0, 0, 0}, elements_, pieces());
  }

  // Returns the ranks with the same states that divide the optimizer's blocks; 1 if none do.
  int copies_with_blocks() const {
    const auto& work = model_of(draft_.training.optimizer()).matrix_work;
    return work && work->in_blocks ? ranks_.shards().copies.ranks : 1;
  }

  // Adds the passes of the wrapper around the optimizer. Without BF16_Optimizer, a pipeline's
  // update in bf16 has the passes of ZeRO's wrapper (assumed).
  void wrap() {
    const auto& training = draft_.training;
    const bool pipeline = ranks_.pipeline.stages > 1;
    const bool bf16 = training.recipe.precision.weights == DataType::bf16;
    const Wrapper wrapper = pipeline && bf16 ? Wrapper::zero : training.wrapper();
    if (how_ != nullptr && autocasts(*how_)) {
      pass("unscale and clip", autocast_passes(training.kernels), elements_, tensors());
    } else if (training.has_bf16_optimizer()) {
      const bool clips = training.recipe.gradient_clipping > 0;
      pass("add up gradients in fp32", bf16_accumulation_passes(), held_.total(), tensors(),
           training.batch.gas);
      pass("norm, clip and clear gradients", bf16_gradient_passes(clips), held_.total(), tensors());
      pass("copy weights", bf16_weight_passes(), elements_, pieces());
    } else if (wrapper != Wrapper::none) {
      const Passes passes =
          wrapper_passes(wrapper, training.optimizer(), training.kernels, training.recipe.engine);
      pass("unscale, clip and copy", passes, elements_, is_fp16(wrapper) ? tensors() : pieces());
    }
  }

  // Sums norms of weights and updates of tensors that several ranks share: one call for all
  // tensors. Shards of flat groups are normed by their own rank alone. An optimizer that sums them
  // tensor by tensor has its calls in extras().
  void sum_norms_of_tensors() {
    const OptimizerModel& optimizer = model_of(draft_.training.optimizer());
    if (draft_.training.has_flat_groups() || !optimizer.layerwise || optimizer.sums_per_tensor != 0)
      return;
    if (const auto norms = some(call(ranks_.shards().shard, Op::all_reduce, 2 * 4 * tensors())))
      then({"all_reduce norms of tensors", Category::gradient_comm, *norms});
  }

  // Adds work and calls of the update other than its passes (optimizer_state.h).
  void extras() {
    UpdateDivision division{.shards = ranks_.shards().shard.ranks,
                            .flat = draft_.training.flattens(),
                            .copies = copies_with_blocks()};
    if (how_ != nullptr) {
      const double sliced =
          parallel::sliced_parameters(*draft_.training.model, how_->layout).total();
      division.of_model = held_.total() / sliced;
      division.tensor_ranks = how_->layout.tp;
      division.sums_columns = how_->sums_columns;
      division.matrices = whole_matrices(*how_);
    }
    const double gradient =
        how_ != nullptr ? how_->gradient_bytes() : gradient_bytes(draft_.training);
    const UpdateExtras of = update_extras(draft_.training.optimizer(), draft_.step.kind,
                                          draft_.training.kernels, *draft_.training.model, division,
                                          gradient, draft_.training.recipe.projection);
    for (const KernelWork& work : of.kernels)
      then({"kernels of the small space", Category::optimizer, work});
    for (const ProductWork& product : of.products)
      then({"products of the optimizer", Category::optimizer, product});
    for (const SharedCall& shared : of.calls) {
      const ProcessGroup group = shared.among == SharedCall::Among::shards ? ranks_.shards().shard
                                 : shared.among == SharedCall::Among::copies
                                     ? ranks_.shards().copies
                                     : ranks_.tensor_ranks();
      then({shared.name, Category::gradient_comm, call(group, shared.op, shared.bytes.value())},
           shared.times);
    }
  }

  StepDraft& draft_;
  const Parallelism* how_;  // nullptr without a layout
  const StageRanks& ranks_;
  int stage_;
  parallel::RankParameters held_;
  std::vector<GroupSize> groups_;
  double elements_ = 0;  // number of elements that the rank updates
};

}  // namespace

void add_agreement(StepDraft& draft) {
  if (!draft.pipeline)
    overflow_flag(draft);
  else if (draft.pipeline->synchronised)
    norm_and_overflow(draft);
}

void add_update(StepDraft& draft, int stage) {
  UpdateWriter(draft, stage).write();
  exchange_momenta(draft, stage);
  gather_updated(draft, stage);
}

}  // namespace lambcast
