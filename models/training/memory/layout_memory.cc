#include "models/training/memory/layout_memory.h"

#include <algorithm>

#include "models/parallel/stage_memory.h"
#include "models/training/plan/compressed_allreduce.h"
#include "models/training/plan/exchange_workspace.h"
#include "models/training/plan/expert_rows.h"
#include "models/training/plan/gradient_exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/layout_contents.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/plan/weight_sharing.h"
#include "models/training/price/passage.h"

namespace lambcast {
namespace {

using parallel::RankParameters;
using parallel::Sharding;

constexpr double gib = 1024.0 * 1024 * 1024;

// Fitted to two runs of BigScience's search under nvidia-smi (the fitted rows of bigscience_a100).
constexpr double communicator_bytes = 0.5 * gib;
constexpr double context_bytes = 1.5 * gib;

parallel::ExpertLoad expert_load(const ModelShape& model, const Parallelism& how) {
  if (model.experts == 0) return {};
  return {.rows = rows_per_choice(how),
          .tp = how.layout.expert_tp(),
          .one_hot = how.experts.routing == Routing::one_hot,
          .recomputed = how.repeated == Repeated::experts};
}

parallel::ActivationSetting activation_setting(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  parallel::ActivationSetting setting;
  setting.tp = how.layout.tp;
  setting.cp = how.layout.cp;
  setting.sequence_parallel = how.sequence_parallel;
  setting.fused_attention = !keeps_scores(training);
  setting.product_bytes = std::min(2.0, bytes_per_element(how.format));
  setting.attention_bytes = how.fp8_attention ? 1 : 2;
  setting.fused_gates = how.framework.fusion != Fusion::eager;
  setting.fp8_gates = how.fp8_gates;
  setting.recompute = how.recompute;
  setting.divides_checkpoints = how.partitions_activations;
  setting.experts = expert_load(*training.model, how);
  setting.micro_batch = training.batch.micro;
  setting.seq_len = training.seq_len;
  return setting;
}

parallel::StateBytes state_bytes(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  parallel::StateBytes states;
  states.frozen = states.quantized = std::min(how.weight_bytes, bytes_per_element(how.format));
  if (const auto& adapters = training.model->adapters; adapters && adapters->frozen_bits > 0)
    states.quantized = adapters->frozen_bits / 8;
  states.gradients = how.gradient_bytes();
  const UpdateDivision division{.shards = how.sharding == Sharding::none ? 1 : how.shard_ranks,
                                .tensor_ranks = how.layout.tp,
                                .flat = training.flattens()};
  states.moments = state_bytes_per_element(training.optimizer(), *training.model, division,
                                           training.recipe.projection);
  if (!how.states.are_usual()) {
    states.moments = how.states.momentum + how.states.variance;
    states.master = how.states.master;
  } else if (how.format == MatrixFormat::single) {
    states.weights = parallel::fp32_states.weights;
    states.master = parallel::fp32_states.master;
  } else if (how.framework.shards_fp32 && how.sharding == Sharding::weights) {
    states.weights = states.master;
    states.master = 0;
  } else if (how.framework.shards_fp32) {
    states.optimizer_gradients = states.gradients;  // sharded, in addition to the unsharded sums
  } else if (how.framework.sums_beside && how.framework.fp32_gradients) {
    states.gradients = parallel::bf16_summed_gradients.gradients;
  } else if (how.framework.copies_gradients && !how.framework.fp32_gradients) {
    states.optimizer_gradients = parallel::fp16_copied_gradients.optimizer_gradients;
  }
  if (how.optimizer_on == OptimizerOn::host) {
    states.master = states.moments = states.optimizer_gradients = 0;
    if (how.sharding > Sharding::optimizer) states.gradients = 0;
  }
  return states;
}

// Returns the tokens of one micro batch on one rank.
double tokens_of(const TrainingPlan& training) {
  return static_cast<double>(training.batch.micro * training.seq_len) /
         training.parallelism->layout.cp;
}

// Returns the bytes of gathered weights while they are in use, and of their gradients until they
// are reduced.
double sharded_buffers(const ModelShape& model, const Parallelism& how, const RankParameters& held,
                       double block) {
  const double outer = held.vocabulary;
  if (how.framework.live_elements > 0) {
    const double whole = persistent_weights(model, how).all();
    const double live = std::max(how.framework.live_elements, block * kept_blocks(model, how));
    return how.weight_bytes * std::min(live + whole, held.held());
  }
  const double gradient = 2 + how.gradient_bytes();  // in the computed and the reduced format
  const double whole = 2 * block * block_weight_bytes(model, how) + outer * how.weight_bytes;
  return model.adapters ? whole : whole + gradient * std::max(block, outer / 2);
}

double bucket_bytes(const Parallelism& how, const RankParameters& held) {
  if (!how.framework.flat_buckets || how.sharding == Sharding::none) return 0;
  return 2 * how.gradient_bytes() * std::min(how.framework.least_bucket, held.total());
}

// Returns the bytes that one block's backward pass needs in addition to the activations: gradients
// of the feed-forward's inner tensors, of the block's input and of its residual. Experts add
// gradients of the inputs of their rows.
double gradient_bytes_of_block(const TrainingPlan& training) {
  const BlockWork work = block_work_of(training, training.seq_len);
  const double tokens = tokens_of(training);
  const auto h = static_cast<double>(work.hidden);
  const double columns = work.gated ? 3 : 1;
  double inner = tokens * columns * static_cast<double>(work.ffn) / work.tensor_parallel;
  if (const auto plan = expert_plan(*training.model, *training.parallelism, work)) {
    const ExpertWork& experts = *plan->block.experts;
    inner = std::max(inner, experts.rows * (columns * static_cast<double>(experts.ffn) + h) +
                                tokens * columns * static_cast<double>(experts.shared_ffn));
  }
  return 2 * (inner + 2 * tokens * h);
}

double buffers_of(const TrainingPlan& training, const RankParameters& held, double block) {
  const Parallelism& how = *training.parallelism;
  const double activation = 2 * tokens_of(training) * static_cast<double>(training.model->hidden);
  double bytes = bucket_bytes(how, held);
  if (how.sharding == Sharding::weights)
    bytes += sharded_buffers(*training.model, how, held, block);
  if (how.sequence_parallel && how.layout.tp > 1) bytes += 2 * activation;
  if (how.layout.pp > 1) bytes += 2 * activation;
  return bytes;
}

// Bytes of the loss without its softmax, which counts among the activations.
struct LossBytes {
  double held = 0;
  double unfilled = 0;  // freed 16-bit logits, too small for later allocations
};

// Returns the fp32 bytes of the loss: PyTorch's backward pass holds the gradient twice. A loss
// divided over tensor parallelism holds the gradient, the exponential and their sum
// (torch/distributed/tensor/parallel/loss.py, _nll_loss_and_log_softmax_backward).
LossBytes loss_bytes(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  if (has_compiled_loss(block_work_of(training, training.seq_len))) return {};
  const bool divided = how.framework.dtensor && how.layout.tp > 1;
  const ModelShape& model = *training.model;
  const double logits =
      tokens_of(training) * model.head_share * static_cast<double>(model.vocab) / how.layout.tp;
  return {(divided ? 12 : 8) * logits, how.framework.dtensor ? 2 * logits : 0};
}

// Returns the host memory for the optimizer states of all ranks of a node. Each shard has weight,
// moments and gradient in fp32. Stages 1 and 2 with several micro batches add gradient sums in 16
// bits, and stage 3 adds weights in 16 bits. All of it is pinned or kept (host_update.h).
double host_bytes(const TrainingPlan& training, const RankParameters& parameters) {
  const Parallelism& how = *training.parallelism;
  if (how.optimizer_on == OptimizerOn::gpu) return 0;
  const bool further = how.sharding == Sharding::weights || training.batch.gas > 1;
  const double shard = parameters.total() / how.shard_ranks;
  return (16 + (further ? 2 : 0)) * shard * std::min(how.layout.gpus_per_node, training.gpus);
}

// Returns the memory of the CUDA context and of the communicators: the world, the tensor, data and
// context groups, and for a pipeline the model-parallel group, a pair with each of two neighbours,
// and the pair of tied stages.
double runtime_bytes(const parallel::ParallelLayout& layout) {
  int communicators = 1;
  if (layout.tp > 1) ++communicators;
  if (layout.dp * layout.cp > 1) ++communicators;
  if (layout.cp > 1) ++communicators;
  if (layout.pp > 1) communicators += 4;
  return context_bytes + communicators * communicator_bytes;
}

// Adds the memory that passes need in addition to the kept activations, and the runtime. The loss
// is freed before the last block's backward pass begins.
template <typename Add>
void add_passes(Add add, const TrainingPlan& training,
                const parallel::StageActivations& activations, double buffers) {
  const Parallelism& how = *training.parallelism;
  const LossBytes loss = activations.head > Bytes() ? loss_bytes(training) : LossBytes{};
  const double of_block = gradient_bytes_of_block(training);
  const double backward = activations.recomputed.value() + of_block;
  if (loss.held > backward) {
    add("loss", loss.held);
  } else {
    add("recomputed", activations.recomputed.value());
    add("block_gradients", of_block);
  }
  add("buffers", buffers);
  add("unused", how.framework.unused_memory *
                        (activations.kept.value() + std::max(loss.held, backward) + buffers) +
                    (loss.held > backward ? loss.unfilled : 0));
  add("runtime", runtime_bytes(how.layout));
}

RankParameters held_by(const std::vector<RankParameters>& chunks,
                       const parallel::Pipeline& pipeline, int stage) {
  RankParameters held;
  for (int chunk = 0; chunk < pipeline.chunks; ++chunk)
    held += chunks[static_cast<std::size_t>(pipeline.position(stage, chunk))];
  return held;
}

double block_elements(const std::vector<RankParameters>& chunks, std::int64_t layers) {
  double elements = 0;
  for (const RankParameters& chunk : chunks) elements += chunk.held() - chunk.vocabulary;
  return elements / static_cast<double>(layers);
}

}  // namespace

std::vector<MemoryForecast> forecast_stage_memory(const TrainingPlan& training) {
  const Parallelism& how = *training.parallelism;
  const parallel::Pipeline pipeline = how.pipeline(training.batch.gas);
  const LayoutContents contents = contents_of(training);
  const auto stages =
      parallel::memory_by_stage(*training.model, how.layout, pipeline, contents.chunks,
                                activation_setting(training), state_bytes(training), how.sharding);
  const double block = block_elements(contents.parameters, training.model->layers);
  const ProcessGroup replicas = owners_of(how, false).front().replicas;
  const ExchangeLevels levels = levels_of(training.exchange, replicas);
  std::vector<MemoryForecast> held_by_stage;
  for (int stage = 0; stage < pipeline.stages; ++stage) {
    const parallel::StageMemory& held = stages[static_cast<std::size_t>(stage)];
    MemoryForecast memory;
    const auto add = [&](std::string_view part, double bytes) {
      if (bytes == 0) return;
      memory.parts.emplace_back(part, Bytes(bytes));
      memory.peak += Bytes(bytes);
    };
    for (const auto& [part, bytes] : held.parts())
      if (part != "recomputed") add(part, bytes.value());
    const RankParameters parameters = held_by(contents.parameters, pipeline, stage);
    if (!is_onebit(training.optimizer()) && training.exchange.kind != Exchange::Kind::all_reduce) {
      const AveragedGradients averaged = averaged_gradients(training, parameters, replicas);
      add("exchange_state", exchange_state_bytes(training, averaged));
      add("exchange_workspace", exchange_workspace_bytes(training, averaged));
    }
    for (const auto& [part, bytes] : compression_state(
             training.optimizer(), training.kernels, parameters.total(),
             static_cast<double>(padded_share(levels, parameters.total())), levels.between.ranks))
      add(part, bytes);
    if (how.secondary_ranks > 1)
      add("second_copy", how.weight_bytes * parameters.total() / how.secondary_ranks);
    add_passes(add, training, held.activations, buffers_of(training, parameters, block));
    memory.host = Bytes(host_bytes(training, parameters));
    memory.fits =
        memory.peak <= training.device->memory_capacity && fits_host(*training.cluster, memory);
    held_by_stage.push_back(std::move(memory));
  }
  return held_by_stage;
}

std::vector<std::pair<std::string, Bytes>> undivided_passes(const TrainingPlan& training) {
  std::vector<std::pair<std::string, Bytes>> parts;
  const auto add = [&](std::string_view part, double bytes) {
    if (bytes > 0) parts.emplace_back(part, Bytes(bytes));
  };
  TrainingPlan whole = training;
  whole.parallelism = undivided(training);
  if (!whole.parallelism) {
    const double kept = activation_bytes(*training.model, training.batch.micro, training.seq_len,
                                         keeps_scores(training))
                            .value();
    add("activations", kept);
    add("unused", Framework{}.unused_memory * kept);
    add("runtime", runtime_bytes({.dp = training.gpus}));
    return parts;
  }
  whole.parallelism->attention =
      keeps_scores(training) ? AttentionKernel::unfused : AttentionKernel::flash1;
  const parallel::StageActivations activations =
      parallel::activation_memory(*whole.model, whole.parallelism->pipeline(1),
                                  contents_of(whole).chunks, activation_setting(whole))
          .front();
  add("activations", activations.kept.value());
  add_passes(add, whole, activations, 0);
  return parts;
}

MemoryForecast forecast_layout_memory(const TrainingPlan& training) {
  const std::vector<MemoryForecast> stages = forecast_stage_memory(training);
  MemoryForecast fullest = *std::ranges::max_element(stages, {}, &MemoryForecast::peak);
  for (const MemoryForecast& stage : stages) fullest.host = std::max(fullest.host, stage.host);
  fullest.fits &= fits_host(*training.cluster, fullest);
  return fullest;
}

}  // namespace lambcast
