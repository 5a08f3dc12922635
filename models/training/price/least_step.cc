#include "models/training/price/least_step.h"

#include <algorithm>
#include <functional>
#include <map>
#include <vector>

#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/gradient_reduction.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/price/block_kernels.h"
#include "models/training/price/slowest_rank.h"
#include "topologies/nic_limit.h"

namespace lambcast {
namespace {

Duration both_passes(const BlockKernels& block) {
  return total_time(block.forward) + total_time(block.backward);
}

// Returns the exposed time of sending a block's tokens to their experts and back, in one pass.
Duration exposed_exchanges(const ExpertPlan& experts, const TrainingPlan& training,
                           CollectiveCosts& costs) {
  if (experts.overlapped) return {};
  const auto time = [&](const std::optional<Call>& call) {
    return call ? costs
                      .cost({training.cluster, call->group, training.network, training.expand},
                            call->backend, call->op, call->bytes, call->algorithm)
                      .time
                : Duration();
  };
  const Duration inside = time(experts.inside) * 2, between = time(experts.between) * 2;
  return experts.at_once ? std::max(inside, between) : inside + between;
}

std::vector<Duration> times_by_position(const PipelinePlan& plan, const TrainingPlan& training,
                                        CollectiveCosts& costs) {
  const std::vector<BlockKinds> kinds = kinds_of(plan, rates_of_slowest(training, 1));
  const Duration dense = both_passes(kinds.front().dense);
  Duration experts = dense;
  if (kinds.front().experts)
    experts =
        both_passes(*kinds.front().experts) + exposed_exchanges(*plan.experts, training, costs) * 2;
  std::vector<Duration> times;
  for (const parallel::ChunkContent& chunk : plan.chunks) {
    Duration time;
    for (int layer = chunk.first_layer; layer < chunk.first_layer + chunk.layers; ++layer)
      time +=
          plan.experts && plan.experts->layers[static_cast<std::size_t>(layer)] ? experts : dense;
    times.push_back(time);
  }
  return times;
}

int node_of_stage(const parallel::RankGrid& grid, int stage) {
  parallel::Coordinates coordinates{};
  coordinates[static_cast<std::size_t>(parallel::Axis::pp)] = stage;
  return parallel::rank_of(grid, coordinates) / grid.gpus_per_node;
}

// Returns the least time in which the gradients of the busiest node leave it; zero if they are not
// summed or are compressed.
Duration least_of_gradients(const PipelinePlan& plan, const TrainingPlan& training,
                            const DistinctStep& step) {
  const Parallelism& how = *training.parallelism;
  if (!step.sums_gradients() || exchanges_gradients(training) ||
      site_ranks(training.exchange) > 1 || how.quantized_gradients)
    return {};
  const parallel::RankGrid grid = parallel::dense_grid(how.layout);
  const LayoutContents contents = contents_of(training);
  std::map<int, Bytes> nodes;
  Duration least;
  for (int position = 0; position < plan.pipeline.positions(); ++position) {
    Bytes& node = nodes[node_of_stage(grid, plan.pipeline.stage_at(position))];
    for (const Owners& owners : owners_of(how, training.model->experts > 0)) {
      const ProcessGroup& group = owners.replicas;
      const double others = 1 - 1.0 / group.nodes();
      node += Bytes(owners.of(contents.parameters[static_cast<std::size_t>(position)]) *
                    gradient_bytes(training) * group.siblings * others);
    }
    least = std::max(least, least_time_on_nics(*training.cluster, node));
  }
  return least;
}

}  // namespace

Duration least_block_time(const TrainingPlan& training, const DistinctStep& step) {
  if (!training.parallelism) return {};
  const PipelinePlan plan = computation_of(training, step.seq_len);
  if (!plan.stacks.empty()) return {};
  const BlockKinds kinds = kinds_of(plan, rates_of_slowest(training, 1)).front();
  const Duration dense = both_passes(kinds.dense);
  if (!kinds.experts) return dense;
  const Duration experts = both_passes(*kinds.experts);
  const bool alike = std::ranges::all_of(plan.experts->layers, std::identity());
  return alike ? experts : std::min(dense, experts);
}

Duration least_step_time(const TrainingPlan& training, const DistinctStep& step,
                         CollectiveCosts& costs) {
  if (!training.parallelism) return {};
  const PipelinePlan plan = computation_of(training, step.seq_len);
  if (!plan.stacks.empty()) return {};
  const parallel::Pipeline& pipeline = plan.pipeline;
  const std::vector<Duration> times = times_by_position(plan, training, costs);
  const bool waits = !parallel::splits_backward(pipeline.schedule);
  Duration least = least_of_gradients(plan, training, step), before;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    Duration of_stage = waits ? before : Duration();
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
      of_stage +=
          times[static_cast<std::size_t>(pipeline.position(stage, chunk))] * pipeline.micro_batches;
    least = std::max(least, of_stage);
    before += times[static_cast<std::size_t>(stage)];
  }
  return least;
}

}  // namespace lambcast
