#include "models/training/memory/pass_memory.h"

#include <algorithm>

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
  const double gradient =
      how.activation_bytes() + how.gradient_bytes();  // as computed, and as reduced
  const double whole = 2 * block * block_weight_bytes(model, how) + outer * how.weight_bytes;
  return model.adapters ? whole : whole + gradient * std::max(block, outer / 2);
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
  return training.parallelism->activation_bytes() * (inner + 2 * tokens * h);
}

double buffers_of(const TrainingPlan& training, const RankParameters& held, double block) {
  const Parallelism& how = *training.parallelism;
  const double activation =
      how.activation_bytes() * tokens_of(training) * static_cast<double>(training.model->hidden);
  double bytes = 0;
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

// Returns the bytes of the loss. PyTorch's backward pass holds the fp32 gradient twice. A loss
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

double block_elements(const std::vector<RankParameters>& chunks, std::int64_t layers) {
  double elements = 0;
  for (const RankParameters& chunk : chunks) elements += chunk.held() - chunk.vocabulary;
  return elements / static_cast<double>(layers);
}

}  // namespace

std::vector<PassMemory> pass_memory(const TrainingPlan& training, const LayoutContents& contents,
                                    const std::vector<RankParameters>& held) {
  const Parallelism& how = *training.parallelism;
  std::vector<PassMemory> stages;
  const auto add = [&](std::string_view part, double bytes) {
    if (bytes > 0) stages.back().parts.emplace_back(part, Bytes(bytes));
  };
  if (!undivided(training)) {
    const double kept = activation_bytes(*training.model, training.batch.micro, training.seq_len,
                                         keeps_scores(training), how.activation_bytes())
                            .value();
    stages.emplace_back();
    add("activations", kept);
    add("unused", how.framework.unused_memory * kept);
    add("runtime", runtime_bytes(how.layout));
    return stages;
  }
  const auto activations =
      parallel::activation_memory(*training.model, how.pipeline(training.batch.gas),
                                  contents.chunks, activation_setting(training, training.seq_len));
  const double block = block_elements(contents.parameters, training.model->layers);
  for (std::size_t stage = 0; stage < held.size(); ++stage) {
    stages.push_back({{}, activations[stage].host});
    add("activations", activations[stage].kept.value());
    add_passes(add, training, activations[stage], buffers_of(training, held[stage], block));
  }
  return stages;
}

}  // namespace lambcast
