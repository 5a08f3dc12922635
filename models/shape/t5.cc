// T5 (Raffel et al. 2020) and Switch Transformer (Fedus et al. 2022) with the tensors of Hugging
// Face transformers' T5ForConditionalGeneration and SwitchTransformersForConditionalGeneration.
//
// The sequence length is the encoder's. The decoder's length is target_fraction times it. The
// default fraction is that of span corruption with 15 % noise in spans of 3 tokens (Raffel et al.
// 2020, section 3.1.4): 568 tokens become an input of 568 - 85 + 28 + 1 = 512 and a target of 85 +
// 28 + 1 = 114.
//
//   gated = true       a gate next to the up projection (T5 1.1, mT5, Flan-T5)
//   tied_head = false  a head of its own (the same models)
//   biases = true, positions = 1026   biases of matrices and norms, learned positions and a norm
//                      after the embedding of each stack, instead of relative_buckets (BART)
#include <fmt/format.h>

#include "models/shape/block.h"
#include "models/shape/families.h"

namespace lambcast {
namespace {

constexpr double span_corruption = 114.0 / 512.0;  // decoder tokens per encoder token
constexpr double max_target_fraction = 16;

struct Stack {
  std::string prefix;  // "encoder." or "decoder."
  bool decoder = false;
  int first_layer = 0;
  std::int64_t layers = 0;
  std::int64_t inner = 0;             // heads * head_dim
  std::int64_t relative_buckets = 0;  // 0: no position bias
  std::int64_t positions = 0;         // rows of learned positions
  bool biases = false;
  std::int64_t sparse_every = 0;  // one of every sparse_every blocks has experts; 0: none
  bool dropout = false;
};

// Returns whether a block has experts: with sparse_every = 2 the blocks 1, 3, 5, ...
bool is_sparse(const Stack& stack, int block) {
  if (stack.sparse_every == 0) return false;
  return stack.sparse_every == 1 || block % stack.sparse_every == 1;
}

// Add the bias of a matrix, and a norm with its bias, if the stack has biases.
void add_bias(const Scope& scope, const Stack& stack, std::string_view name, std::int64_t width,
              TensorSplit split = TensorSplit::replicated) {
  if (stack.biases) scope.vector(fmt::format("{}.bias", name), width, split);
}
void add_norm(const Scope& scope, const Stack& stack, std::string_view name) {
  scope.vector(fmt::format("{}.weight", name), scope.shape.hidden);
  add_bias(scope, stack, name, scope.shape.hidden);
}

void add_attention(const Scope& scope, const Stack& stack, std::string_view name,
                   std::int64_t relative_buckets) {
  for (const std::string_view matrix : {"q", "k", "v", "o"}) {
    const bool out = matrix == "o";
    const std::string full = fmt::format("{}.{}", name, matrix);
    scope.matrix(full + ".weight", scope.shape.hidden * stack.inner,
                 out ? TensorSplit::inputs : TensorSplit::outputs);
    add_bias(scope, stack, full, out ? scope.shape.hidden : stack.inner,
             out ? TensorSplit::replicated : TensorSplit::outputs);
  }
  if (relative_buckets > 0)
    scope.matrix(fmt::format("{}.relative_attention_bias.weight", name),
                 relative_buckets * scope.shape.heads, TensorSplit::outputs);
}

void add_feed_forward(const Scope& scope, const Stack& stack, std::string_view module,
                      bool sparse) {
  const std::int64_t elements = scope.shape.hidden * scope.shape.ffn;
  if (!sparse) {
    if (scope.shape.gated)
      for (int half = 0; half < 2; ++half)
        scope.matrix(fmt::format("{}.wi_{}.weight", module, half), elements, TensorSplit::outputs);
    else
      scope.matrix(fmt::format("{}.wi.weight", module), elements, TensorSplit::outputs);
    scope.matrix(fmt::format("{}.wo.weight", module), elements, TensorSplit::inputs);
    add_bias(scope, stack, fmt::format("{}.wi", module), scope.shape.ffn, TensorSplit::outputs);
    add_bias(scope, stack, fmt::format("{}.wo", module), scope.shape.hidden);
    return;
  }
  scope.matrix(fmt::format("{}.router.classifier.weight", module),
               scope.shape.hidden * scope.shape.experts);
  for (std::int64_t e = 0; e < scope.shape.experts; ++e) {
    scope.expert(fmt::format("{}.experts.expert_{}.wi.weight", module, e), elements,
                 TensorSplit::outputs);
    scope.expert(fmt::format("{}.experts.expert_{}.wo.weight", module, e), elements,
                 TensorSplit::inputs);
  }
}

double tokens_of(const ModelShape& shape, const Stack& stack) {
  return stack.decoder ? shape.decoder->tokens : 1;
}

Cost feed_forward_cost_of(const ModelShape& shape, const Stack& stack, bool sparse) {
  return feed_forward_cost({.hidden = shape.hidden,
                            .ffn = shape.ffn,
                            .gated = shape.gated,
                            .dropout = stack.dropout,
                            .experts = sparse ? shape.experts : 0,
                            .experts_per_token = sparse ? shape.experts_per_token : 1,
                            .tokens = tokens_of(shape, stack)});
}

Cost block_cost(const ModelShape& shape, const Stack& stack, bool sparse) {
  const double tokens = tokens_of(shape, stack);
  Attention attention{.hidden = shape.hidden,
                      .heads = shape.heads,
                      .query_width = stack.inner,
                      .key_width = stack.inner,
                      .dropout = stack.dropout,
                      .query_tokens = tokens,
                      .memory_tokens = tokens};
  Cost cost =
      attention_cost(attention) + norm_cost(shape.hidden, tokens) + norm_cost(shape.hidden, tokens);
  if (stack.decoder) {
    attention.memory_tokens = 1;
    cost = cost + attention_cost(attention) + norm_cost(shape.hidden, tokens);
  }
  return cost + feed_forward_cost_of(shape, stack, sparse);
}

void add_stack(ModelShape& shape, const Stack& stack, std::string_view feed_forward) {
  for (int block = 0; block < stack.layers; ++block) {
    const std::string prefix = fmt::format("{}block.{}.layer.", stack.prefix, block);
    const Scope scope{shape, stack.first_layer + block, prefix};
    add_attention(scope, stack, "0.SelfAttention", block == 0 ? stack.relative_buckets : 0);
    add_norm(scope, stack, "0.layer_norm");
    if (stack.decoder) {
      add_attention(scope, stack, "1.EncDecAttention", 0);
      add_norm(scope, stack, "1.layer_norm");
    }
    const int last = stack.decoder ? 2 : 1;
    const bool sparse = is_sparse(stack, block);
    add_feed_forward(scope, stack, fmt::format("{}.{}", last, feed_forward), sparse);
    add_norm(scope, stack, fmt::format("{}.layer_norm", last));
    shape.blocks.push_back(block_cost(shape, stack, sparse));
    if (shape.experts == 0) continue;
    shape.expert_layers.push_back(sparse);
    shape.routed.push_back(sparse ? feed_forward_cost_of(shape, stack, true) : Cost{});
  }
  // Stacks with biases have this norm after the embedding, at the same cost.
  const Scope top{shape, -1, stack.prefix};
  add_norm(top, stack, "final_layer_norm");
  if (stack.positions > 0) top.matrix("embed_positions.weight", stack.positions * shape.hidden);
}

void build_encoder_decoder(const Table& model, ModelShape& shape, bool moe) {
  shape.hidden = model.integer("hidden", 1, 1'000'000);
  shape.heads = shape.kv_heads = model.integer("heads", 1, 10'000);
  shape.ffn = model.integer("ffn", 1, 10'000'000);
  read_flash(model, shape);
  read_tokens(model, shape);
  Stack encoder{.prefix = "encoder."};
  encoder.layers = read_layers(model, "encoder_layers");
  shape.head_size = shape.value_size = model.integer("head_dim", 1, 10'000);
  encoder.inner = shape.heads * shape.head_size;
  encoder.biases = model.get_or<bool>("biases", false);
  if (model.has("positions"))
    encoder.positions = model.integer("positions", shape.max_seq_len, 1 << 30);
  else if (model.has("relative_buckets"))
    encoder.relative_buckets = model.integer("relative_buckets", 1, 1'000'000);
  else
    encoder.relative_buckets = 32;
  encoder.dropout = model.get_or<bool>("dropout", true);
  Stack decoder = encoder;
  decoder.prefix = "decoder.";
  decoder.decoder = true;
  decoder.first_layer = static_cast<int>(encoder.layers);
  decoder.layers = read_layers(model, "decoder_layers");
  shape.layers = encoder.layers + decoder.layers;
  const double target_tokens = model.get_or<double>("target_fraction", span_corruption);
  if (!(target_tokens > 0 && target_tokens <= max_target_fraction))
    fail_input(model.where("target_fraction"), fmt::format("{} is out of range", target_tokens),
               fmt::format("above 0, up to {}", max_target_fraction));
  shape.decoder = DecoderStack{decoder.layers, target_tokens};
  if (moe) {
    encoder.sparse_every = decoder.sparse_every = model.integer("sparse_every", 1, 10'000);
    read_experts(model, shape, shape.layers);
  }
  shape.groups = usual_groups;

  Scope{shape, -1, ""}.matrix("shared.weight", shape.vocab * shape.hidden, TensorSplit::vocabulary);
  const std::string_view feed_forward = moe ? "mlp" : "DenseReluDense";
  add_stack(shape, encoder, feed_forward);
  add_stack(shape, decoder, feed_forward);
  if (!model.get_or<bool>("tied_head", true))
    Scope{shape, -1, ""}.matrix("lm_head.weight", shape.vocab * shape.hidden,
                                TensorSplit::vocabulary);

  shape.outside = norm_cost(shape.hidden) + norm_cost(shape.hidden, target_tokens) +
                  vocabulary_cost(shape.hidden, shape.vocab, target_tokens);
  if (encoder.dropout)  // after both embeddings
    add_embedding_mask(shape, 1 + target_tokens);
}

}  // namespace

void build_t5(const Table&, const Table& model, ModelShape& shape) {
  shape.gated = model.get_or<bool>("gated", false);
  build_encoder_decoder(model, shape, false);
}

void build_switch(const Table&, const Table& model, ModelShape& shape) {
  build_encoder_decoder(model, shape, true);
}

}  // namespace lambcast
