#include "models/device/cross_attention.h"

#include "models/device/block_pieces.h"

namespace lambcast {
namespace {

struct CrossSizes {
  RankSizes decoder, encoder;
  std::int64_t width;  // width of queries, keys or values on the rank

  explicit CrossSizes(const BlockWork& work)
      : decoder(work), encoder(of_encoder(work)), width(decoder.query_width()) {}

  static RankSizes of_encoder(BlockWork work) {
    work.seq_len = work.encoder_tokens;
    return RankSizes(work);
  }
};

AttentionWork cross_attention_work(const BlockWork& work, const RankSizes& size) {
  AttentionWork attention;
  attention.batch = work.micro_batch;
  attention.heads = attention.kv_heads = size.heads;
  attention.head_size = size.head_size;
  attention.queries = work.seq_len;
  attention.keys = work.encoder_tokens;
  attention.dropout = work.dropout;
  attention.eager_softmax = work.fusion == Fusion::eager;
  attention.format = work.fp8_attention ? MatrixFormat::fp8 : unscaled_format(work);
  attention.autocast = work.autocast;
  return attention;
}

void add(const PieceWriter& w, const std::vector<AttentionPiece>& core) {
  for (const AttentionPiece& piece : core)
    w.add(piece.name, piece.product ? PieceKind::attention : PieceKind::memory, piece.cost);
}

}  // namespace

void cross_attention(const PieceWriter& w) {
  const BlockWork& work = w.work;
  const CrossSizes size(work);
  norm(w, size.decoder);
  autocast(w, count(size.decoder.tokens, work.hidden));
  linear(w, "cross query", size.decoder, work.hidden, size.width);
  linear(w, "cross key-value", size.encoder, work.hidden, 2 * size.width);
  add(w, attention_forward(work.attention, cross_attention_work(work, size.decoder), w.rates));
  w.cast(count(size.decoder.tokens, size.width));
  linear(w, "cross projection", size.decoder, size.width, work.hidden);
  residual(w, size.decoder);
}

void cross_attention_backward(const PieceWriter& w) {
  const BlockWork& work = w.work;
  const CrossSizes size(work);
  const AttentionWork attention = cross_attention_work(work, size.decoder);
  residual_backward(w, size.decoder);
  linear_backward(w, "cross projection", size.decoder, size.width, work.hidden, work.format);
  if (work.repeated == Repeated::attention_core) {
    PieceWriter again = w;
    again.pass = Pass::recompute;
    add(again, attention_forward(work.attention, attention, w.rates));
  }
  add(w, attention_backward(work.attention, attention, w.rates));
  linear_backward(w, "cross key-value", size.encoder, work.hidden, 2 * size.width, work.format);
  w.memory("sum of encoder gradients", count(size.encoder.tokens, work.hidden), 6);
  linear_backward(w, "cross query", size.decoder, work.hidden, size.width, work.format);
  norm_backward(w, size.decoder);
}

}  // namespace lambcast
