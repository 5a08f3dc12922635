#include "models/training/plan/stage_ranks.h"

#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/layout_contents.h"

namespace lambcast {

parallel::RankParameters StageRanks::of(int stage) const {
  parallel::RankParameters sum;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk) sum += of(stage, chunk);
  return sum;
}

int StageRanks::sites(const Exchange& exchange) const {
  const int ranks = site_ranks(exchange);
  return ranks > 1 ? replicas().ranks / ranks : 1;
}

std::vector<Place> StageRanks::places() const {
  std::vector<Place> places;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    parallel::Coordinates coordinates{};
    coordinates[static_cast<std::size_t>(parallel::Axis::pp)] = stage;
    const int rank = parallel::rank_of(grid, coordinates);
    places.push_back({rank / grid.gpus_per_node, rank % grid.gpus_per_node});
  }
  return places;
}

StageRanks stage_ranks(const TrainingPlan& training) {
  if (training.parallelism) {
    const Parallelism& how = *training.parallelism;
    return {parallel::dense_grid(how.layout), how.pipeline(training.batch.gas),
            contents_of(training).parameters,
            summing(owners_of(how, training.model->experts > 0), training.exchange)};
  }
  const ProcessGroup all = all_ranks(training);
  const auto elements = static_cast<double>(optimized_parameters(*training.model));
  parallel::ParallelLayout layout;
  layout.dp = training.gpus;
  layout.gpus_per_node = training.gpus_per_node;
  return {parallel::dense_grid(layout),
          {.micro_batches = static_cast<int>(training.batch.gas)},
          {{.divided = elements}},
          {{false, all, shard_groups(all, training.shards())}}};
}

}  // namespace lambcast
