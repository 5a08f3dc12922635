#include "models/device/expert_time.h"

#include <cmath>

#include "models/device/matrix_product.h"
#include "sim/base/check.h"

namespace lambcast {
namespace {

struct Experts {
  const PieceWriter& writer;
  const ExpertWork& work;
  std::int64_t hidden = writer.work.hidden;
  MatrixFormat format = writer.work.format;
  double h = static_cast<double>(hidden);
  double f = static_cast<double>(work.ffn);
  std::int64_t up = writer.work.gated ? 2 * work.ffn : work.ffn;
  // Rows per expert are rounded up.
  std::int64_t rows = std::llround(std::ceil(work.rows / static_cast<double>(work.local)));
  std::int64_t tokens = std::llround(work.tokens), places = std::llround(work.sent);

  PieceWriter of(Pass pass) const {
    PieceWriter other = writer;
    other.pass = pass;
    return other;
  }

  // Adds the product of all local experts in one call. The rows of a router or an expert are
  // contiguous, so they are aligned.
  void grouped(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k,
               bool weight_gradient = false) const {
    const Pass pass = weight_gradient ? Pass::weight_gradient : writer.pass;
    of(pass).grouped_product(name, m, n, k, work.local, weight_gradient);
  }

  void router() const { plain("router", tokens, work.all, hidden); }
  void choice() const {
    const bool eager = writer.work.fusion == Fusion::eager;
    writer.memory("choice", work.tokens * static_cast<double>(work.all), eager ? 32 : 12,
                  eager ? 8 : 2);
  }

  // Adds the kernels of one-hot weights. `half` and `single` are bytes per element in these
  // formats; memory() takes the bytes for 16 bits.
  void weights(double half, double single) const {
    const double each = format == MatrixFormat::single ? single / 2 : half;
    const auto k = static_cast<int>(work.one_hot);
    writer.memory("one-hot weights", work.tokens * work.sent, each, k + 3);
  }
  void multiply_to_places() const {
    const auto k = static_cast<double>(work.one_hot);
    weights(4 * k + 12 * (k - 1) + 14, 4 * k + 12 * (k - 1) + 10);
    plain("dispatch", places, hidden, tokens);
  }
  void multiply_back() const { plain("combine", tokens, hidden, places); }
  void multiply_back_backward() const {
    const auto k = static_cast<double>(work.one_hot);
    plain("combine", places, hidden, tokens);
    plain("combine", tokens, places, hidden);
    weights(6 + 4 * k, 4 * k);
  }
  void plain(std::string_view name, std::int64_t m, std::int64_t n, std::int64_t k) const {
    const MatrixFormat half = format == MatrixFormat::single ? format : MatrixFormat::half;
    writer.product(name, m, n, k, half, true);
  }

  void copies(std::string_view of_tokens, std::string_view of_rows) const {
    if (work.sent > 0 && work.one_hot == 0)
      writer.memory(of_tokens, (work.tokens + work.sent) * h, 2);
    if (work.local > 1 || work.sent == 0)
      writer.memory(of_rows, (work.received + work.rows) * h, 2);
  }

  double activated() const { return work.rows * f; }
};

}  // namespace

void experts_forward(const PieceWriter& writer, const ExpertWork& work) {
  LAMBCAST_CHECK(work.local >= 1 && work.all >= work.local && work.rows >= 0, "{} of {} experts",
                 work.local, work.all);
  const Experts e{writer, work};
  e.router();
  e.choice();
  if (work.one_hot > 0) e.multiply_to_places();
  e.copies("permute", "sort");
  writer.cast(work.rows * e.h);
  e.grouped("expert up", e.rows, e.up, e.hidden);
  const bool eager = writer.work.fusion == Fusion::eager && !writer.work.gated;
  writer.memory("expert activation", e.activated(),
                writer.work.gated ? 6
                : eager           ? 8
                                  : 4,
                eager ? 2 : 1);
  e.grouped("expert down", e.rows, e.hidden, work.ffn);
  if (writer.work.biased_experts) writer.memory("expert bias", work.rows * e.h, 24, 4);
  e.copies("unpermute", "unsort");
  if (work.one_hot > 0) e.multiply_back();
}

void experts_backward(const PieceWriter& writer, const ExpertWork& work) {
  const Experts e{writer, work};
  if (work.one_hot > 0) e.multiply_back_backward();
  e.copies("unpermute", "unsort");
  if (writer.work.biased_experts) writer.memory("expert bias", work.rows * e.h, 40, 7);
  writer.cast(work.rows * e.h);
  e.grouped("expert down", e.rows, work.ffn, e.hidden);
  e.grouped("expert down", e.hidden, work.ffn, e.rows, true);
  const bool eager = writer.work.fusion == Fusion::eager && !writer.work.gated;
  writer.memory("expert activation", e.activated(),
                writer.work.gated ? 10
                : eager           ? 8
                                  : 6,
                eager ? 2 : 1);
  writer.cast(work.rows * static_cast<double>(e.up));
  e.grouped("expert up", e.up, e.hidden, e.rows, true);
  e.choice();
  e.router();
  if (writer.work.input_is_data) return;
  e.grouped("expert up", e.rows, e.hidden, e.up);
  e.copies("permute", "sort");
  if (work.one_hot > 0) e.plain("dispatch", e.tokens, e.hidden, e.places);
  e.router();
}

}  // namespace lambcast
