#include "models/training/memory/memory.h"

#include "models/training/memory/layout_memory.h"
#include "models/training/plan/buffers.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/plan/exchange_workspace.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/optimizer_state.h"

namespace lambcast {

MemoryForecast forecast_memory(const TrainingPlan& training) {
  if (training.parallelism) return forecast_layout_memory(training);
  const ModelShape& model = *training.model;
  const auto all = static_cast<double>(parameters(model));
  const auto optimized = static_cast<double>(optimized_parameters(model));
  const Wrapper wrapper = training.wrapper();
  const double weight = bytes_of(training.recipe.precision.weights);
  const double sum = bytes_of(accumulation_data_type(training.recipe));
  const double shards = training.shards();
  const bool bf16 = wrapper == Wrapper::bf16;
  const bool in_half = training.recipe.precision.is_half();
  const bool sums_apart = bf16 || (in_half && training.passes && training.passes->fp32_gradients);
  const bool shards_gradients = training.recipe.zero.stage >= 2;

  MemoryForecast memory;
  const auto add = [&](std::string_view part, double bytes) {
    if (bytes > 0) memory.parts.emplace_back(part, Bytes(bytes));
  };
  add("weights", all * weight);
  const double summed_over = shards_gradients ? shards : 1;
  add("gradients", sums_apart ? all * weight : all * sum / summed_over);
  if (sums_apart) add("gradient_sums", optimized * 4 / (bf16 ? 1 : summed_over));
  if (wrapper == Wrapper::zero) {
    const Zero& zero = training.recipe.zero;
    const double buckets = zero.overlap ? 2 : 1;
    add("gradient_buckets", buckets * static_cast<double>(zero.bucket) * weight);
  }
  if (wrapper != Wrapper::none) add("master_weights", optimized * 4 / shards);
  const auto of_state = model_of(training.optimizer()).state_bytes;
  if (of_state == one_moment || of_state == two_moments) {
    add("momentum", optimized * 4 / shards);
    if (of_state == two_moments) add("variance", optimized * 4 / shards);
  } else {
    const UpdateDivision division{.shards = training.shards(), .flat = training.flattens()};
    add("optimizer_states", optimized / shards *
                                state_bytes_per_element(training.optimizer(), model, division,
                                                        training.recipe.projection));
  }
  double padded = 0;
  for (const std::int64_t buffer : compressed_buffers(training))
    padded += static_cast<double>(buffer);
  for (const auto& [part, bytes] :
       compression_state(training.optimizer(), training.kernels, optimized / shards, padded,
                         levels_of(training.exchange, all_ranks(training)).between.ranks))
    add(part, bytes);
  add("exchange_state", exchange_state_bytes(training, averaged_gradients(training)));
  add("exchange_workspace", exchange_workspace_bytes(training, averaged_gradients(training)));
  for (const auto& [part, bytes] : undivided_passes(training)) add(part, bytes.value());
  for (const auto& [part, bytes] : memory.parts) memory.peak += bytes;
  memory.fits = memory.peak <= training.device->memory_capacity;
  return memory;
}

bool fits_host(const Cluster& cluster, const MemoryForecast& memory) {
  const auto& capacity = cluster.host_capacity;
  return !capacity || memory.host <= *capacity;
}

}  // namespace lambcast
