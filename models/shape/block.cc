#include "models/shape/block.h"

#include <fmt/format.h>

#include <utility>

namespace lambcast {
namespace {

constexpr std::int64_t max_layers = 10'000;
constexpr std::int64_t max_width = 1'000'000;
constexpr std::int64_t max_heads = 10'000;
constexpr std::int64_t max_ffn = 10'000'000;
constexpr std::int64_t max_vocab = 10'000'000;
constexpr std::int64_t max_tokens = 16'777'216;
constexpr std::int64_t max_experts = 4096;
constexpr std::int64_t max_expert_layers = 100'000;  // limit of experts times layers with experts

void add(const Scope& scope, std::string_view name, std::int64_t elements, std::size_t group,
         TensorSplit split, bool expert = false) {
  scope.shape.tensors.push_back(
      {fmt::format("{}{}", scope.prefix, name), elements, scope.layer, group, true, expert, split});
}

PerSample operator+(const PerSample& a, const PerSample& b) {
  return {a.fixed + b.fixed, a.per_token + b.per_token, a.per_token_pair + b.per_token_pair};
}

}  // namespace

std::vector<std::int64_t> stage_counts(const Table& model, const char* key, std::size_t most_stages,
                                       std::int64_t most) {
  auto counts = model.get<std::vector<std::int64_t>>(key);
  if (counts.empty() || counts.size() > most_stages)
    fail_input(model.where(key), fmt::format("{} stages are out of range", counts.size()),
               fmt::format("1 to {} stages", most_stages));
  for (const std::int64_t count : counts)
    if (count < 1 || count > most)
      fail_input(model.where(key), fmt::format("{} is out of range", count),
                 fmt::format("1 to {}", most));
  return counts;
}

void Scope::matrix(std::string_view name, std::int64_t elements, TensorSplit split) const {
  add(*this, name, elements, decay, split);
}

void Scope::vector(std::string_view name, std::int64_t elements, TensorSplit split) const {
  add(*this, name, elements, no_decay, split);
}

void Scope::linear(std::string_view name, std::int64_t in, std::int64_t out) const {
  matrix(fmt::format("{}.weight", name), in * out);
  vector(fmt::format("{}.bias", name), out);
}

void Scope::column(std::string_view name, std::int64_t in, std::int64_t out) const {
  matrix(fmt::format("{}.weight", name), in * out, TensorSplit::outputs);
  vector(fmt::format("{}.bias", name), out, TensorSplit::outputs);
}

void Scope::row(std::string_view name, std::int64_t in, std::int64_t out) const {
  matrix(fmt::format("{}.weight", name), in * out, TensorSplit::inputs);
  vector(fmt::format("{}.bias", name), out);
}

void Scope::norm(std::string_view name, std::int64_t width) const {
  vector(fmt::format("{}.weight", name), width);
  vector(fmt::format("{}.bias", name), width);
}

void Scope::expert(std::string_view name, std::int64_t elements, TensorSplit split) const {
  add(*this, name, elements, decay, split, true);
}

Cost attention_cost(const Attention& attention) {
  const auto h = static_cast<double>(attention.hidden);
  const auto q = static_cast<double>(attention.query_width);
  const auto k = static_cast<double>(attention.key_width);
  const double x = attention.query_tokens;
  const double y = attention.memory_tokens;
  const double mask = attention.dropout ? 1 : 0;
  const double score_bytes = attention.dropout ? 5 : 2;
  Cost cost;
  cost.forward_flops.per_token = x * (2 * h * q + 2 * q * h) + y * 4 * h * k;
  cost.forward_flops.per_token_pair = x * y * 4 * q;
  cost.whole_activation_bytes.per_token = x * (2 + mask) * h;
  cost.activation_bytes.per_token = x * ((2 + mask) * h + 4 * q) + y * 4 * k;
  cost.product_input_bytes.per_token = cost.whole_product_input_bytes.per_token = x * 2 * h;
  cost.attention_bytes.per_token = x * 4 * q + y * 4 * k;
  cost.context_bytes.per_token = x * 2 * q;
  cost.matrix_operand_bytes.per_token = x * 4 * (h + q) + y * 4 * k;
  cost.whole_matrix_operand_bytes.per_token = x * 4 * h;
  cost.alternate_whole_bytes.per_token = x * 2 * h;
  cost.alternate_bytes.per_token = x * (2 * h + 4 * q) + y * 2 * k;
  cost.score_bytes.per_token_pair = x * y * score_bytes * static_cast<double>(attention.heads);
  cost.mask_bytes.per_token = x * mask * h;
  cost.score_mask_bytes.per_token_pair = x * y * mask * static_cast<double>(attention.heads);
  return cost;
}

Cost feed_forward_cost(const FeedForward& feed_forward) {
  const auto h = static_cast<double>(feed_forward.hidden);
  const auto f = static_cast<double>(feed_forward.ffn);
  const double input = feed_forward.parallel ? 0 : 2;
  const double mask = feed_forward.dropout && !feed_forward.parallel ? 1 : 0;
  const double matrices = feed_forward.gated ? 3 : 2;
  const double visits = feed_forward.tokens * static_cast<double>(feed_forward.experts_per_token);
  Cost cost;
  cost.forward_flops.per_token =
      visits * matrices * 2 * h * f +
      feed_forward.tokens * 2 * h * static_cast<double>(feed_forward.experts);
  cost.whole_activation_bytes.per_token = visits * (input + mask) * h;
  cost.activation_bytes.per_token =
      visits * ((input + mask) * h + (feed_forward.gated ? 8 : 4) * f);
  cost.mask_bytes.per_token = visits * mask * h;
  cost.product_input_bytes.per_token = visits * (input * h + 2 * f);
  cost.whole_product_input_bytes.per_token = visits * input * h;
  cost.gate_bytes.per_token = feed_forward.gated ? visits * 2 * f : 0;
  cost.matrix_operand_bytes.per_token = visits * (2 * input * h + (feed_forward.gated ? 6 : 4) * f);
  cost.whole_matrix_operand_bytes.per_token = visits * 2 * input * h;
  cost.alternate_whole_bytes.per_token = feed_forward.gated ? visits * 2 * h : 0;
  cost.alternate_bytes.per_token = cost.alternate_whole_bytes.per_token + visits * 2 * f;
  return cost;
}

Cost shared_experts_cost(const ModelShape& shape) {
  return feed_forward_cost({.hidden = shape.hidden, .ffn = shape.shared_ffn, .gated = true});
}

Cost norm_cost(std::int64_t hidden, double tokens) {
  Cost cost;
  cost.activation_bytes.per_token = tokens * 2 * static_cast<double>(hidden);
  cost.whole_activation_bytes = cost.activation_bytes;
  return cost;
}

Cost norms_cost(const ModelShape& shape) {
  const Cost norm = norm_cost(shape.hidden);
  if (shape.parallel_block) return norm;
  return shape.norms == 4 ? norm + norm + norm + norm : norm + norm;
}

void add_embedding_mask(ModelShape& shape, double tokens) {
  Cost mask;
  mask.activation_bytes.per_token = tokens * static_cast<double>(shape.hidden);
  mask.whole_activation_bytes = mask.activation_bytes;
  shape.embedding_activation_bytes = mask.activation_bytes;
  shape.outside = shape.outside + mask;
}

Cost dense_block_cost(const ModelShape& shape, bool dropout) {
  return attention_cost({.hidden = shape.hidden,
                         .heads = shape.heads,
                         .query_width = shape.hidden,
                         .key_width = shape.hidden,
                         .dropout = dropout}) +
         feed_forward_cost({.hidden = shape.hidden,
                            .ffn = shape.ffn,
                            .parallel = shape.parallel_block,
                            .dropout = dropout}) +
         norms_cost(shape);
}

Cost vocabulary_cost(std::int64_t hidden, std::int64_t vocab, double tokens) {
  const auto h = static_cast<double>(hidden);
  const auto v = static_cast<double>(vocab);
  Cost cost;
  cost.forward_flops.per_token = tokens * 2 * h * v;
  cost.activation_bytes.per_token = tokens * (2 * h + 4 * v);
  cost.whole_activation_bytes.per_token = tokens * 2 * h;
  return cost;
}

Cost operator+(const Cost& a, const Cost& b) {
  return {a.forward_flops + b.forward_flops,
          a.activation_bytes + b.activation_bytes,
          a.score_bytes + b.score_bytes,
          a.mask_bytes + b.mask_bytes,
          a.score_mask_bytes + b.score_mask_bytes,
          a.whole_activation_bytes + b.whole_activation_bytes,
          a.product_input_bytes + b.product_input_bytes,
          a.whole_product_input_bytes + b.whole_product_input_bytes,
          a.attention_bytes + b.attention_bytes,
          a.context_bytes + b.context_bytes,
          a.gate_bytes + b.gate_bytes,
          a.matrix_operand_bytes + b.matrix_operand_bytes,
          a.whole_matrix_operand_bytes + b.whole_matrix_operand_bytes,
          a.alternate_bytes + b.alternate_bytes,
          a.alternate_whole_bytes + b.alternate_whole_bytes};
}

Cost at_length(const Cost& cost, std::int64_t tokens, std::int64_t windows) {
  const auto fixed = [&](PerSample amount) {
    amount.per_token_pair /= static_cast<double>(windows);
    return PerSample{.fixed = amount.at(tokens)};
  };
  return {.forward_flops = fixed(cost.forward_flops),
          .activation_bytes = fixed(cost.activation_bytes),
          .score_bytes = fixed(cost.score_bytes),
          .mask_bytes = fixed(cost.mask_bytes),
          .score_mask_bytes = fixed(cost.score_mask_bytes),
          .whole_activation_bytes = fixed(cost.whole_activation_bytes),
          .product_input_bytes = fixed(cost.product_input_bytes),
          .whole_product_input_bytes = fixed(cost.whole_product_input_bytes),
          .attention_bytes = fixed(cost.attention_bytes),
          .context_bytes = fixed(cost.context_bytes),
          .gate_bytes = fixed(cost.gate_bytes),
          .matrix_operand_bytes = fixed(cost.matrix_operand_bytes),
          .alternate_bytes = fixed(cost.alternate_bytes),
          .alternate_whole_bytes = fixed(cost.alternate_whole_bytes)};
}

void read_width(const Table& model, ModelShape& shape) {
  shape.hidden = model.integer("hidden", 1, max_width);
  shape.heads = model.integer("heads", 1, max_heads);
  shape.kv_heads = shape.heads;
  shape.ffn = model.integer("ffn", 1, max_ffn);
  if (shape.hidden % shape.heads != 0)
    fail_input(model.where("heads"),
               fmt::format("hidden {} is not divisible by {} heads", shape.hidden, shape.heads));
  shape.head_size = shape.value_size = shape.hidden / shape.heads;
}

void read_flash(const Table& model, ModelShape& shape) {
  shape.flash_attention = model.get_or<bool>("flash_attention", false);
}

void read_tokens(const Table& model, ModelShape& shape) {
  const std::int64_t multiple =
      model.has("vocab_multiple") ? model.integer("vocab_multiple", 1, max_vocab) : 1;
  const std::int64_t words = model.integer("vocab", 1, max_vocab);
  shape.vocab = (words + multiple - 1) / multiple * multiple;
  read_lengths(model, shape);
}

void read_lengths(const Table& model, ModelShape& shape) {
  shape.max_seq_len = model.integer("max_seq_len", 1, max_tokens);
  shape.default_seq_len = model.has("default_seq_len")
                              ? model.integer("default_seq_len", 1, shape.max_seq_len)
                              : shape.max_seq_len;
}

void read_experts(const Table& model, ModelShape& shape, std::int64_t expert_layers) {
  shape.experts = model.integer("experts", 1, max_experts);
  shape.experts_per_token = model.integer("experts_per_token", 1, shape.experts);
  if (shape.experts * expert_layers > max_expert_layers)
    fail_input(
        model.where("experts"),
        fmt::format("{} experts in each of {} layers are too many", shape.experts, expert_layers),
        fmt::format("experts times layers up to {}", max_expert_layers));
}

bool add_labels(const Table& model, ModelShape& shape) {
  if (!model.has("labels")) return false;
  shape.head_share = 0;
  if (const std::int64_t labels = model.integer("labels", 0, 1'000'000); labels > 0)
    Scope{shape, -1, ""}.matrix("score.weight", labels * shape.hidden);
  return true;
}

std::int64_t read_layers(const Table& model, std::string_view key) {
  return model.integer(key, 1, max_layers);
}

void read_window(const Table& model, ModelShape& shape) {
  if (!model.has("window")) return;
  shape.window = model.integer("window", 1, max_tokens);
  if (model.has("window_every")) shape.window_every = model.integer("window_every", 1, max_layers);
  if (model.has("window_layers"))
    shape.window_layers = model.integer("window_layers", 1, shape.window_every);
}

}  // namespace lambcast
