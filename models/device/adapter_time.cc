#include "models/device/adapter_time.h"

#include "models/device/matrix_product.h"

namespace lambcast {
namespace {

constexpr std::string_view name = "adapter";

// Adds a product whose output is only written (`times` 1), or first read and then written (2).
void add_product(const PieceWriter& w, std::int64_t m, std::int64_t n, std::int64_t k,
                 double times = 1) {
  const bool single = w.work.format == MatrixFormat::single;
  const MatrixFormat format = single ? MatrixFormat::single : MatrixFormat::half;
  w.add(name, PieceKind::product,
        product_cost({m, n, k, 1, format, times * bytes_per_element(format), true}, w.rates));
}

bool is_fused(const PieceWriter& w) {
  return w.work.fusion == Fusion::compiled && w.work.tensor_parallel == 1;
}

double elements(std::int64_t tokens, std::int64_t width) {
  return static_cast<double>(tokens) * static_cast<double>(width);
}

}  // namespace

void adapter_forward(const PieceWriter& w, const AdaptedProduct& of) {
  const std::int64_t rank = w.work.adapters->rank;
  w.memory(name, elements(of.tokens, of.in), 5);
  add_product(w, of.tokens, rank, of.in);
  add_product(w, of.tokens, of.out, rank, is_fused(w) ? 2 : 1);
  if (!is_fused(w)) w.memory(name, elements(of.tokens, of.out), 4 + 6, 2);
}

void adapter_backward(const PieceWriter& w, const AdaptedProduct& of) {
  const std::int64_t rank = w.work.adapters->rank;
  PieceWriter weight = w;
  weight.pass = Pass::weight_gradient;
  if (!is_fused(w)) w.memory(name, elements(of.tokens, of.out), 4);
  add_product(weight, rank, of.out, of.tokens);
  add_product(w, of.tokens, rank, of.out);
  add_product(weight, of.in, rank, of.tokens);
  add_product(w, of.tokens, of.in, rank);
  w.memory(name, elements(of.tokens, of.in), is_fused(w) ? 7 : 5 + 6, is_fused(w) ? 1 : 2);
}

}  // namespace lambcast
