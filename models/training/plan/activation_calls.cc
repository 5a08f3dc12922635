#include "models/training/plan/activation_calls.h"

#include <algorithm>

namespace lambcast {
namespace {

using parallel::Axis;

// Bytes of a gathered product input relative to 16 bits. Inputs are gathered in the product's own
// format, also in 8 or 4 bits (Transformer Engine pytorch/distributed.py, gather_along_first_dim;
// torchao Float8ColwiseParallel).
double gathered_share(MatrixFormat format) {
  return format == MatrixFormat::single ? 1 : bytes_per_element(format) / 2;
}

// Activations of one rank's tokens in blocks of the same shape.
struct Activations {
  const ModelShape& model;
  const Parallelism& how;
  const parallel::RankGrid& grid;
  double tokens;
  ProcessGroup tensor = parallel::group(grid, {Axis::tp});
  double element = how.activation_bytes();
  double bytes = element * tokens * static_cast<double>(model.hidden);
};

ActivationCalls divided_tensors(const Activations& of, bool dtensor) {
  ActivationCalls calls;
  if (of.how.sequence_parallel) {
    calls.gather = some(call(of.tensor, Op::all_gather, of.bytes * gathered_share(of.how.format)));
    calls.scatter = some(call(of.tensor, Op::reduce_scatter, of.bytes));
    if (dtensor && of.how.layout.tp > 1) calls.copied = Bytes(2 * of.bytes);
  } else {
    calls.sum = some(call(of.tensor, Op::all_reduce, of.bytes));
    if (of.how.partitions_activations)
      calls.checkpoint = some(call(of.tensor, Op::all_gather, of.bytes));
  }
  return calls;
}

// Adds the collectives of adapters under tensor parallelism. Tensors r wide are all-gathered. A
// product computed for all tokens and a share of the columns is then exchanged for all columns of a
// rank's own tokens (or, without sequence parallelism, gathered).
void join_adapters(PipelinePlan& plan, const Activations& of) {
  const auto rank = static_cast<double>(of.model.adapters->rank);
  plan.adapters_gather = some(call(of.tensor, Op::all_gather, of.element * of.tokens * rank));
  plan.adapters_exchange = of.how.sequence_parallel
                               ? call(of.tensor, Op::all_to_all, of.bytes / of.how.layout.tp)
                               : call(of.tensor, Op::all_gather, of.bytes);
}

// Adds the collectives of context parallelism, in the number format of attention. Transformer
// Engine quantizes before it sends, in both passes
// (pytorch/attention/dot_product_attention/context_parallel.py).
void divide_context(PipelinePlan& plan, const Activations& of) {
  const ProcessGroup context = parallel::group(of.grid, {Axis::cp});
  const double t = of.how.layout.tp;
  const double width = static_cast<double>(of.model.head_size + of.model.value_size) / 2;
  const double heads = std::max(1.0, static_cast<double>(of.model.heads) / t);
  const double kv_heads = std::max(1.0, static_cast<double>(of.model.kv_heads) / t);
  const double each = (of.how.fp8_attention ? 1 : of.element) * of.tokens * width;
  if (of.how.framework.context_exchange == ContextExchange::heads) {
    plan.queries_exchange = call(context, Op::all_to_all, each * heads);
    // If there are fewer key-value heads than ranks, they are repeated.
    plan.keys_exchange =
        call(context, Op::all_to_all, each * std::max<double>(kv_heads, of.how.layout.cp));
    return;
  }
  plan.context_rounds = of.how.layout.cp - 1;
  if (plan.block.ring == Ring::fused) {
    plan.keys_values = call(context, Op::send_recv, 2 * each * kv_heads);
    return;
  }
  plan.keys_values = call(context, Op::all_gather, 2 * each * heads * of.how.layout.cp);
  plan.keys_gradients = call(context, Op::send_recv, 2 * 2 * each * heads);
}

// Returns the activations that leave a chunk, as a multiple of the activations of `block`. In an
// encoder-decoder these are the encoder's tokens, plus the decoder's tokens once the decoder has
// begun (Megatron-LM core/pipeline_parallel/schedules.py, get_tensor_shapes).
double carried(const PipelinePlan& plan, std::size_t position) {
  if (plan.block.encoder_tokens == 0) return 1;
  const double encoder =
      static_cast<double>(plan.block.encoder_tokens) / static_cast<double>(plan.block.seq_len);
  const parallel::ChunkContent& chunk = plan.chunks[position];
  const bool begun = chunk.first_layer + chunk.layers > plan.stacks.back().first_layer;
  return begun ? 1 + encoder : encoder;
}

void add_sends(PipelinePlan& plan, const Activations& of) {
  const bool parts = of.how.sequence_parallel || of.how.framework.sends_parts;
  const parallel::Pipeline& pipeline = plan.pipeline;
  for (int p = 0; p + 1 < pipeline.positions(); ++p) {
    const double bytes = of.bytes * carried(plan, static_cast<std::size_t>(p));
    const int from = pipeline.stage_at(p), to = pipeline.stage_at(p + 1);
    plan.sends.push_back(call(parallel::stage_pair(of.grid, from, to), Op::send_recv,
                              parts ? bytes / of.how.layout.tp : bytes));
    plan.sends.back().place = plan.places[static_cast<std::size_t>(std::min(from, to))];
  }
  if (parts && !of.how.sequence_parallel && !plan.sends.empty())
    plan.sends_gather = some(call(of.tensor, Op::all_gather, of.bytes));
}

}  // namespace

void plan_activations(PipelinePlan& plan, const TrainingPlan& training,
                      const parallel::RankGrid& grid) {
  const Parallelism& how = *training.parallelism;
  const auto activations = [&](std::int64_t tokens) {
    return Activations{*training.model, how, grid,
                       static_cast<double>(training.batch.micro * tokens) / how.layout.cp};
  };
  for (BlocksAlike& stack : plan.stacks)
    stack.activations = divided_tensors(activations(stack.block.seq_len), plan.dtensor);
  const Activations of = activations(plan.block.seq_len);
  plan.activations = divided_tensors(of, plan.dtensor);
  plan.loss_sum = some(call(of.tensor, Op::all_reduce, 4 * of.tokens));
  if (of.model.adapters && how.layout.tp > 1) join_adapters(plan, of);
  if (how.layout.cp > 1) divide_context(plan, of);
  add_sends(plan, of);
}

}  // namespace lambcast
