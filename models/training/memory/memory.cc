#include "models/training/memory/memory.h"

#include <algorithm>

#include "models/training/memory/pass_memory.h"
#include "models/training/plan/buffers.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/plan/exchange_workspace.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/price/passage.h"

namespace lambcast {
namespace {

using parallel::RankParameters;
using parallel::Sharding;
using parallel::StateMemory;

// Returns the layout of a run without one: one stage holds the whole model, and ranks divide its
// states as DeepSpeed's wrapper does.
Parallelism whole_model(const TrainingPlan& training) {
  const Recipe& recipe = training.recipe;
  Parallelism how = undivided(training).value_or(Parallelism{});
  how.layout.dp = training.gpus;
  how.layout.gpus_per_node = training.gpus_per_node;
  how.format = recipe.precision.is_half() ? MatrixFormat::half : MatrixFormat::single;
  how.attention = keeps_scores(training) ? AttentionKernel::unfused : AttentionKernel::flash1;
  how.framework.fp32_gradients |= accumulation_data_type(recipe) == DataType::fp32;
  how.framework.flat_buckets = training.wrapper() == Wrapper::zero;
  how.framework.least_bucket = static_cast<double>(recipe.zero.bucket);
  how.framework.overlaps_gradients = recipe.zero.overlap;
  how.shard_ranks = training.shards();
  if (training.wrapper() == Wrapper::bf16) how.sharding = Sharding::optimizer;
  if (training.wrapper() == Wrapper::zero) how.sharding = static_cast<Sharding>(recipe.zero.stage);
  return how;
}

// Returns the optimizer's states by part, in bytes per updated element.
std::vector<std::pair<std::string_view, double>> moments_of(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const OptimizerModel& model = model_of(training.optimizer());
  if (model.state_bytes == two_moments)
    return {{"momentum", how.states.momentum}, {"variance", how.states.variance}};
  const UpdateDivision division{.shards = how.shard_ranks,
                                .tensor_ranks = how.layout.tp,
                                .flat = training.flattens(),
                                .copies = how.replicas() / how.shard_ranks};
  return {{model.state_bytes == one_moment ? "momentum" : "optimizer_states",
           state_bytes_per_element(training.optimizer(), *training.model, division,
                                   training.recipe.projection)}};
}

double updated_share(const ModelShape& model) {
  double trained = 0;
  for (const Tensor& tensor : model.tensors)
    if (!tensor.frozen) trained += static_cast<double>(tensor.elements);
  return static_cast<double>(optimized_parameters(model)) / trained;
}

// Whether gradients of micro batches are added up in fp32, in addition to their 16-bit values.
bool sums_beside(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  return how.framework.sums_beside && how.format != MatrixFormat::single &&
         how.sharding < Sharding::gradients &&
         (how.framework.fp32_gradients || training.has_bf16_optimizer());
}

parallel::StateBytes state_bytes(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const bool fp32 = how.format == MatrixFormat::single;
  const bool deepspeed = training.runs_as_deepspeed();
  parallel::StateBytes bytes;
  bytes.updated = updated_share(*training.model);
  bytes.frozen = bytes.quantized = std::min(how.weight_bytes, bytes_per_element(how.format));
  if (const auto& adapters = training.model->adapters; adapters && adapters->frozen_bits > 0)
    bytes.quantized = adapters->frozen_bits / 8;
  bytes.gradients = how.gradient_bytes();
  bytes.moments = 0;
  for (const auto& [part, of_element] : moments_of(training)) bytes.moments += of_element;
  bytes.master = how.states.master;
  if (fp32) {
    bytes.weights = parallel::fp32_states.weights;
    // ZeRO also clones a rank's share of fp32 weights (single_partition_of_fp32_groups).
    if (!deepspeed || how.sharding == Sharding::none) bytes.master = 0;
  } else if (how.framework.shards_fp32 && how.sharding == Sharding::weights) {
    bytes.weights = bytes.master;
    bytes.master = 0;
  } else if (how.framework.shards_fp32 && how.sharding != Sharding::none) {
    bytes.gradient_copies = bytes.gradients;  // the rank's shard, in addition to unsharded sums
  } else if (sums_beside(training)) {
    bytes.gradients = 2;
    bytes.gradient_sums = 4;
  } else if (how.framework.copies_gradients && !how.framework.fp32_gradients) {
    bytes.gradient_copies = 4;
  }
  if (how.optimizer_on == OptimizerOn::host) {
    bytes.master = bytes.moments = bytes.gradient_copies = 0;
    if (how.sharding > Sharding::optimizer) bytes.gradients = 0;
  }
  return bytes;
}

// Returns the bytes of DeepSpeed's buckets for gradients of shared states. Their full size is
// allocated for every model (runtime/zero/stage_1_and_2.py, ipg_buffer; stage3.py has one). Under a
// pipeline the engine flattens the gradients itself, into a bucket that exceeds this size by up to
// an embedding (runtime/engine.py, buffered_allreduce_fallback): two buckets are assumed.
double bucket_bytes(const TrainingPlan& training, const RankParameters& held) {
  const Parallelism& how = *training.parallelism;
  const double elements = how.framework.least_bucket;
  if (!how.framework.flat_buckets || how.sharding == Sharding::none) return 0;
  if (how.layout.pp > 1)
    return 2 * (sums_beside(training) ? 4 : how.gradient_bytes()) *
           std::min(elements, held.total());
  if (training.has_bf16_optimizer()) return 0;
  const bool two = how.framework.overlaps_gradients && how.sharding != Sharding::weights;
  return (two ? 2 : 1) * elements * bytes_of(training.recipe.precision.weights);
}

// Returns the host memory for the optimizer states of a rank. Each shard has weight, moments and
// gradient in fp32. Stages 1 and 2 with several micro batches add gradient sums in 16 bits, and
// stage 3 adds weights in 16 bits. All of it stays allocated between steps (host_update.h).
double host_states(const TrainingPlan& training, const RankParameters& parameters) {
  const Parallelism& how = *training.parallelism;
  if (how.optimizer_on == OptimizerOn::gpu) return 0;
  const bool further = how.sharding == Sharding::weights || training.batch.gas > 1;
  return (16 + (further ? 2 : 0)) * parameters.total() / how.shard_ranks;
}

// Returns the number of elements in a rank's compressed_allreduce, including the padding.
double padded_elements(const TrainingPlan& training, const ExchangeLevels& levels,
                       double elements) {
  if (training.parallelism) return static_cast<double>(padded_share(levels, elements));
  double padded = 0;
  for (const std::int64_t buffer : compressed_buffers(training))
    padded += static_cast<double>(buffer);
  return padded;
}

std::vector<RankParameters> held_by_stage(const LayoutContents& contents,
                                          const parallel::Pipeline& pipeline) {
  std::vector<RankParameters> stages(static_cast<std::size_t>(pipeline.stages));
  for (int stage = 0; stage < pipeline.stages; ++stage)
    for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
      stages[static_cast<std::size_t>(stage)] +=
          contents.parameters[static_cast<std::size_t>(pipeline.position(stage, chunk))];
  return stages;
}

}  // namespace

std::vector<MemoryForecast> forecast_stage_memory(const TrainingPlan& training) {
  TrainingPlan under = training;
  if (!under.parallelism) under.parallelism = whole_model(training);
  const Parallelism& how = *under.parallelism;
  const parallel::Pipeline pipeline = how.pipeline(training.batch.gas);
  const LayoutContents contents = contents_of(under);
  const std::vector<RankParameters> parameters = held_by_stage(contents, pipeline);
  const std::vector<PassMemory> passes = pass_memory(under, contents, parameters);
  const parallel::StateBytes bytes = state_bytes(under);
  const std::vector<Owners> owners = owners_of(how, training.model->experts > 0);
  const ProcessGroup& replicas = owners.front().replicas;
  const ExchangeLevels levels = levels_of(training.exchange, replicas);
  const parallel::Shards shards{owners.front().shards.shard.ranks,
                                owners.back().shards.shard.ranks};
  std::vector<MemoryForecast> stages;
  for (std::size_t stage = 0; stage < parameters.size(); ++stage) {
    const RankParameters& held = parameters[stage];
    MemoryForecast memory;
    const auto add = [&](std::string_view part, double of_part) {
      if (of_part > 0) memory.parts.emplace_back(part, Bytes(of_part));
    };
    const StateMemory states = state_memory(held, bytes, how.sharding, shards);
    add("weights", states.weights.value());
    add("gradients", states.gradients.value());
    add("gradient_sums", states.gradient_sums.value());
    add("gradient_copies", states.gradient_copies.value());
    add("gradient_buckets", bucket_bytes(under, held));
    add("master_weights", states.master.value());
    if (bytes.moments > 0)
      for (const auto& [part, of_element] : moments_of(under))
        add(part, states.moments.value() * of_element / bytes.moments);
    const double updated = held.total() * bytes.updated / how.shard_ranks;
    for (const auto& [part, of_part] :
         compression_state(training.optimizer(), training.kernels, updated,
                           padded_elements(training, levels, updated), levels.between.ranks))
      add(part, of_part);
    if (training.exchange.kind != Exchange::Kind::all_reduce) {
      const AveragedGradients averaged = averaged_gradients(under, held, replicas);
      add("exchange_state", exchange_state_bytes(training, averaged));
      add("exchange_workspace", exchange_workspace_bytes(training, averaged));
    }
    if (how.secondary_ranks > 1)
      add("second_copy", how.weight_bytes * held.total() / how.secondary_ranks);
    for (const auto& [part, of_part] : memory.parts) memory.states += of_part;
    for (const auto& [part, of_part] : passes[stage].parts) add(part, of_part.value());
    for (const auto& [part, of_part] : memory.parts) memory.peak += of_part;
    memory.host = (Bytes(host_states(under, held)) + passes[stage].host) *
                  std::min(how.layout.gpus_per_node, training.gpus);
    memory.fits =
        memory.peak <= training.device->memory_capacity && fits_host(*training.cluster, memory);
    stages.push_back(std::move(memory));
  }
  return stages;
}

MemoryForecast forecast_memory(const TrainingPlan& training) {
  const std::vector<MemoryForecast> stages = forecast_stage_memory(training);
  MemoryForecast fullest = *std::ranges::max_element(stages, {}, &MemoryForecast::peak);
  for (const MemoryForecast& stage : stages) fullest.host = std::max(fullest.host, stage.host);
  fullest.fits &= fits_host(*training.cluster, fullest);
  return fullest;
}

bool fits_host(const Cluster& cluster, const MemoryForecast& memory) {
  const auto& capacity = cluster.host_capacity;
  return !capacity || memory.host <= *capacity;
}

}  // namespace lambcast
