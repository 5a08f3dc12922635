#include "models/device/block_time.h"

#include <cmath>

#include "models/device/adapter_time.h"
#include "models/device/block_pieces.h"
#include "models/device/cross_attention.h"
#include "models/device/expert_time.h"
#include "models/device/image_time.h"
#include "models/device/matrix_product.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

using Writer = PieceWriter;

void activation(const Writer& w, const RankSizes& size) {
  const double elements = count(size.tokens, size.ffn);
  const bool eager = w.work.fusion == Fusion::eager;
  // Eager modules start two kernels: in a gated layer the activation and the product with the gate,
  // otherwise the bias and gelu.
  w.memory("activation", elements, w.work.gated ? (eager ? 10 : 6) : (eager ? 8 : 4),
           eager ? 2 : 1);
}

AttentionWork attention_work(const BlockWork& w, const RankSizes& size) {
  const int heads_over = w.exchanges_heads ? w.context_parallel : 1;
  const int tokens_over = w.exchanges_heads ? 1 : w.context_parallel;
  return {w.micro_batch * w.windows,
          share_of(size.heads, heads_over),
          share_of(size.kv_heads, heads_over),
          size.head_size,
          share_of(w.seq_len / w.windows, tokens_over),
          w.seq_len / w.windows,
          w.causal,
          w.dropout,
          w.fusion == Fusion::eager,
          tokens_over,
          w.fp8_attention ? MatrixFormat::fp8 : unscaled_format(w),
          size.value_size,
          w.window,
          w.window_every,
          w.window_layers,
          w.autocast,
          w.distances};
}

// Joins the results of c blocks as Ring::fused.
void join_fused_ring(const Writer& w, const RankSizes& size, int c) {
  const double keys_values = count(size.tokens, size.kv_heads * (size.head_size + size.value_size));
  const bool fp8 = w.work.fp8_attention;
  w.memory("pack ring", keys_values, fp8 ? 2 : 4);
  if (w.pass == Pass::input_gradient) {
    w.memory("join ring", count(size.tokens, size.query_width()), fp8 ? 9 * c + 10 : 6 * c - 2, c);
    w.memory("join ring", keys_values, fp8 ? 9 * c + 10 : 3 * c + 3, c + 1);
  } else {
    w.memory("join ring", count(size.tokens, size.context_width()), fp8 ? 17 * c + 5 : 6 * c - 2,
             c + 1);
  }
}

// Joins the results of all blocks of keys and values.
void join_ring(const Writer& w, const RankSizes& size) {
  const int blocks = w.work.exchanges_heads ? 1 : w.work.context_parallel;
  if (blocks == 1) return;
  if (w.work.ring == Ring::fused) return join_fused_ring(w, size, blocks);
  const bool backward = w.pass == Pass::input_gradient;
  const std::int64_t width = backward ? 3 * size.query_width() : size.context_width();
  const double elements = count(size.tokens, width);
  if (w.work.ring == Ring::traced)
    w.memory("join ring", elements, 10 * (backward ? blocks + 1 : blocks), 2 * blocks);
  else
    w.memory("join ring", elements, (backward ? 18 : 45) * blocks, 6 * blocks);
}

void attention_core(const Writer& w, const RankSizes& size) {
  if (w.work.fp8_attention) w.memory("cast", count(size.tokens, size.qkv_width()), 3);
  for (const AttentionPiece& piece :
       attention_forward(w.work.attention, attention_work(w.work, size), w.rates))
    w.add(piece.name, piece.product ? PieceKind::attention : PieceKind::memory, piece.cost);
  join_ring(w, size);
}

void rotary(const Writer& w, const RankSizes& size) {
  const bool eager = w.work.fusion == Fusion::eager;
  const std::int64_t width = (size.heads + size.kv_heads) * size.head_size;
  if (w.work.norms_queries)
    w.memory("query-key norm", count(size.tokens, width), w.pass == Pass::input_gradient ? 6 : 4,
             2);
  if (!w.work.rotary) return;
  w.memory("rotary", count(size.tokens, width), eager ? 16 : 4, eager ? 4 : 1);
}

// Name and widths of a linear layer on a rank.
struct Linear {
  std::string_view name;
  std::int64_t in, out;
};

std::vector<Linear> query_key_value(const BlockWork& work, const RankSizes& size) {
  constexpr std::string_view name = "query-key-value";
  if (!work.latent && work.separate_products) {
    const std::int64_t kv_width = size.kv_heads * size.head_size;
    return {{name, work.hidden, size.query_width()},
            {name, work.hidden, kv_width},
            {name, work.hidden, kv_width}};
  }
  if (!work.latent) return {{name, work.hidden, size.qkv_width()}};
  const LatentAttention& latent = *work.latent;
  const std::int64_t plain = size.head_size - latent.rope_size;
  std::vector<Linear> linears{
      {"key-value down", work.hidden, latent.key_rank + latent.rope_size},
      {name, latent.query_rank > 0 ? latent.query_rank : work.hidden, size.query_width()},
      {"key-value up", latent.key_rank, size.heads * (plain + size.value_size)}};
  if (latent.query_rank > 0)
    linears.insert(linears.begin(), {"query down", work.hidden, latent.query_rank});
  return linears;
}

// Return the products that have adapters: queries, keys and values as one product, the projection,
// up as one product, and down. If a product is split by input features, each rank computes its part
// of the output columns.
AdaptedProduct adapted_query_key_value(const BlockWork& work, const RankSizes& size) {
  return {size.tokens, work.hidden, size.qkv_width()};
}
AdaptedProduct adapted_projection(const BlockWork& work, const RankSizes& size) {
  return {size.tokens, size.context_width(), share_of(work.hidden, work.tensor_parallel)};
}
AdaptedProduct adapted_up(const BlockWork& work, const RankSizes& size) {
  return {size.tokens, work.hidden, size.up};
}
AdaptedProduct adapted_down(const BlockWork& work, const RankSizes& size) {
  return {size.tokens, size.ffn, share_of(work.hidden, work.tensor_parallel)};
}

bool adapts_feed_forward(const BlockWork& work) {
  return work.adapters && work.adapters->feed_forward();
}

// Without compilation, a separate kernel adds the two branches. Compiled code accumulates in the
// second branch's product.
void sum_branches(const Writer& w, const RankSizes& size) {
  if (w.work.parallel_block && w.work.fusion != Fusion::compiled)
    w.memory("sum of branches", count(size.tokens, w.work.hidden), 6);
}

// Returns whether the feed-forward has its own norm instead of sharing the attention's.
bool has_own_norm(const BlockWork& work) { return work.norms > 1; }
bool norms_behind(const BlockWork& work) { return work.norms == 4; }

void shared_forward(const Writer& w, const RankSizes& size) {
  const std::int64_t h = w.work.hidden, ffn = w.work.experts->shared_ffn;
  w.product("up", size.tokens, 2 * ffn, h, w.work.format, true);
  w.memory("activation", count(size.tokens, ffn), 6);
  w.product("down", size.tokens, h, ffn, w.work.format, true);
}

void mixture_forward(const Writer& w, const RankSizes& size) {
  experts_forward(w, *w.work.experts);
  if (w.work.experts->shared_ffn > 0) shared_forward(w, size);
}

struct Block {
  const BlockWork& work;
  RankSizes size;
  bool alternate;  // recomputes only every second product

  double width() const { return count(size.tokens, work.hidden); }
};

void attention_pass(const Writer& attention, const Block& block) {
  const BlockWork& work = block.work;
  const RankSizes& size = block.size;
  norm(attention, size);
  windows(attention, block.width());
  autocast(attention, block.width());
  if (block.alternate) {
    linear(attention, "key", size, work.hidden, size.kv_heads * size.head_size);
  } else {
    for (const Linear& product : query_key_value(work, size))
      linear(attention, product.name, size, product.in, product.out);
    if (work.adapters) adapter_forward(attention, adapted_query_key_value(work, size));
  }
  rotary(attention, size);
  heads_forward(attention, block.width());
  if (!block.alternate) attention_core(attention, size);
  attention.cast(count(size.tokens, size.context_width()));
  linear(attention, "projection", size, size.context_width(), work.hidden);
  if (work.adapters) adapter_forward(attention, adapted_projection(work, size));
  if (norms_behind(work)) norm(attention, size);
  if (!work.parallel_block) residual(attention, size);
}

void forward_pass(const BlockWork& work, const GpuRates& rates, Pass pass,
                  std::vector<Piece>& pieces) {
  const Block block{work, RankSizes(work),
                    pass == Pass::recompute && work.repeated == Repeated::alternate_products};
  const RankSizes& size = block.size;
  const Writer feed_forward{work, rates, pieces, BlockPart::feed_forward, pass};
  if (pass == Pass::recompute && work.repeated == Repeated::experts) {
    if (work.experts) mixture_forward(feed_forward, size);
    return;
  }
  const bool alone = work.heads == 0;
  if (!alone) {
    const Writer attention{work, rates, pieces, BlockPart::attention, pass};
    attention_pass(attention, block);
    if (work.encoder_tokens > 0) cross_attention(attention);
    if (has_own_norm(work)) norm(feed_forward, size);
    autocast(feed_forward, block.width());
  }
  if (work.experts) {
    mixture_forward(feed_forward, size);
    if (!alone) residual(feed_forward, size);
    return;
  }
  const bool once = block.alternate || size.up == size.ffn;
  if (once || !work.separate_products)
    linear(feed_forward, "up", size, work.hidden, once ? size.ffn : size.up);
  else
    for (int half = 0; half < 2; ++half) linear(feed_forward, "up", size, work.hidden, size.ffn);
  if (adapts_feed_forward(work)) adapter_forward(feed_forward, adapted_up(work, size));
  activation(feed_forward, size);
  if (block.alternate || (pass == Pass::recompute && ends_before_last_product(work))) return;
  linear(feed_forward, "down", size, size.ffn, work.hidden);
  if (adapts_feed_forward(work)) adapter_forward(feed_forward, adapted_down(work, size));
  if (norms_behind(work)) norm(feed_forward, size);
  sum_branches(feed_forward, size);
  if (!alone) residual(feed_forward, size);
}

void activation_backward(const Writer& w, const RankSizes& size) {
  const bool eager = w.work.fusion == Fusion::eager;
  w.memory("activation", count(size.tokens, size.ffn),
           w.work.gated ? (eager ? 16 : 10) : (eager ? 8 : 6), eager ? 2 : 1);
}

void feed_forward_backward(const Writer& w, const RankSizes& size) {
  linear_backward(w, "down", size, size.ffn, w.work.hidden, w.work.format);
  if (adapts_feed_forward(w.work)) adapter_backward(w, adapted_down(w.work, size));
  activation_backward(w, size);
  if (adapts_feed_forward(w.work)) adapter_backward(w, adapted_up(w.work, size));
  if (!w.work.separate_products || size.up == size.ffn) {
    linear_backward(w, "up", size, w.work.hidden, size.up, w.work.format, !w.work.input_is_data);
    return;
  }
  for (int half = 0; half < 2; ++half)
    linear_backward(w, "up", size, w.work.hidden, size.ffn, w.work.format);
  w.memory("sum of input gradients", count(size.tokens, w.work.hidden), 6);
}

// Writes the backward pass of the routed and the shared experts.
void mixture_backward(const Writer& w, const RankSizes& size) {
  experts_backward(w, *w.work.experts);
  RankSizes shared = size;
  shared.ffn = w.work.experts->shared_ffn;
  shared.up = 2 * shared.ffn;
  if (shared.ffn > 0) feed_forward_backward(w, shared);
}

void attention_backward_pass(const Writer& attention, const RankSizes& size) {
  const BlockWork& work = attention.work;
  const double width = count(size.tokens, work.hidden);
  if (!work.parallel_block) residual_backward(attention, size);
  if (norms_behind(work)) norm_backward(attention, size);
  linear_backward(attention, "projection", size, size.context_width(), work.hidden, work.format);
  if (work.adapters) adapter_backward(attention, adapted_projection(work, size));
  if (work.repeated == Repeated::attention_core) {
    Writer again = attention;
    again.pass = Pass::recompute;
    attention_core(again, size);
  }
  if (work.fp8_attention) attention.memory("cast", count(size.tokens, size.context_width()), 3);
  for (const AttentionPiece& piece :
       attention_backward(work.attention, attention_work(work, size), attention.rates))
    attention.add(piece.name, piece.product ? PieceKind::attention : PieceKind::memory, piece.cost);
  join_ring(attention, size);
  rotary(attention, size);
  heads_backward(attention, width);
  if (work.adapters) adapter_backward(attention, adapted_query_key_value(work, size));
  std::vector<Linear> products = query_key_value(work, size);
  for (auto product = products.rbegin(); product != products.rend(); ++product)
    linear_backward(attention, product->name, size, product->in, product->out, work.format);
  if (work.separate_products && !work.latent) attention.memory("sum of input gradients", width, 8);
  windows(attention, width);
  if (!has_own_norm(work)) sum_branches(attention, size);
  norm_backward(attention, size);
}

}  // namespace

std::string_view name_of(PieceKind kind) {
  constexpr std::string_view names[] = {"product", "attention", "memory"};
  return names[static_cast<std::size_t>(kind)];
}
std::string_view name_of(BlockPart part) {
  constexpr std::string_view names[] = {"attention", "feed-forward", "embedding", "head"};
  return names[static_cast<std::size_t>(part)];
}
std::string_view name_of(Pass pass) {
  constexpr std::string_view names[] = {"forward", "input gradient", "weight gradient",
                                        "recompute"};
  return names[static_cast<std::size_t>(pass)];
}
const std::vector<std::string>& fusion_names() {
  static const std::vector<std::string> names{"eager", "fused", "compiled"};
  return names;
}
std::string_view name_of(Fusion fusion) { return fusion_names()[static_cast<std::size_t>(fusion)]; }
std::string_view name_of(Repeated repeated) {
  constexpr std::string_view names[] = {
      "nothing", "attention core", "experts", "alternate products", "until last product", "block"};
  return names[static_cast<std::size_t>(repeated)];
}

BlockWork block_work(const ModelShape& model, std::int64_t micro_batch, std::int64_t seq_len) {
  BlockWork work;
  work.hidden = model.hidden;
  work.heads = model.heads;
  work.kv_heads = model.kv_heads;
  work.head_size = model.head_size;
  work.value_size = model.value_size;
  work.latent = model.latent;
  work.window = model.window;
  work.window_every = model.window_every;
  work.window_layers = model.window_layers;
  work.parallel_block = model.parallel_block;
  work.norms = model.norms;
  work.input_is_data = model.heads == 0;
  work.norms_queries = model.norms_queries;
  work.biased_experts = model.biased_experts;
  work.ffn = model.dense_ffn > 0 ? model.dense_ffn : model.ffn;
  work.vocab = model.vocab;
  work.embedding = embedding_width(model);
  work.distances = model.distances;
  work.gated = model.gated;
  work.rotary = model.rotary;
  work.adapters = model.adapters;
  work.causal = model.causal;
  work.head_share = model.head_share;
  work.patch_values = model.patch_values;
  work.drop_path = model.drop_path;
  work.micro_batch = micro_batch;
  work.seq_len = seq_len;
  return work;
}

bool has_compiled_loss(const BlockWork& work) {
  return work.fusion == Fusion::compiled && !work.eager_loss;
}

bool ends_before_last_product(const BlockWork& work) {
  return work.repeated == Repeated::until_last_product && !norms_behind(work);
}

std::vector<Piece> block_forward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  forward_pass(work, rates, Pass::forward, pieces);
  return pieces;
}

std::vector<Piece> block_backward(const BlockWork& work, const GpuRates& rates) {
  std::vector<Piece> pieces;
  const RankSizes size(work);
  const bool alone = work.heads == 0;
  if (work.repeated > Repeated::attention_core) forward_pass(work, rates, Pass::recompute, pieces);
  const Writer feed_forward{work, rates, pieces, BlockPart::feed_forward, Pass::input_gradient};
  if (!alone) residual_backward(feed_forward, size);
  if (norms_behind(work)) norm_backward(feed_forward, size);
  if (work.experts)
    mixture_backward(feed_forward, size);
  else
    feed_forward_backward(feed_forward, size);
  if (alone) return pieces;
  if (has_own_norm(work)) norm_backward(feed_forward, size);
  const Writer attention{work, rates, pieces, BlockPart::attention, Pass::input_gradient};
  if (work.encoder_tokens > 0) cross_attention_backward(attention);
  attention_backward_pass(attention, size);
  return pieces;
}

RateTimes rests_on(std::span<const Piece> pieces) {
  RateTimes times;
  for (const Piece& piece : pieces) times += piece.rests_on;
  return times;
}

Duration total_time(std::span<const Piece> pieces, std::optional<BlockPart> part,
                    std::optional<Pass> pass) {
  Duration sum;
  for (const Piece& piece : pieces)
    if ((!part || piece.part == *part) && (!pass || piece.pass == *pass)) sum += piece.duration;
  return sum;
}

}  // namespace lambcast
