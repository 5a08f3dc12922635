#include "kernels/profile/layer_shape.h"

#include <algorithm>

namespace lambcast::cuda {

std::vector<LayerShape> profiled_layers() {
  return {{768, 12, 3072, 128},       // BERT-Base
          {1024, 16, 4096, 128},      // BERT-Large, first phase
          {1024, 16, 4096, 512},      // BERT-Large, second phase
          {1600, 25, 6400, 1024},     // GPT-2 XL
          {4096, 32, 11008, 4096},    // Llama 2 7B (its third feed-forward matrix is left out)
          {12288, 96, 49152, 2048}};  // GPT-3
}

std::vector<Product> forward_products(const LayerShape& shape, int micro_batch) {
  const auto size = [](int x) { return static_cast<std::size_t>(x); };
  const std::size_t h = size(shape.hidden), f = size(shape.ffn), s = size(shape.seq_len);
  const std::size_t t = size(micro_batch) * s, d = h / size(shape.heads);
  const std::size_t batch = size(micro_batch) * size(shape.heads);
  return {{t, 3 * h, h, 1}, {s, s, d, batch}, {s, d, s, batch},
          {t, h, h, 1},     {t, f, h, 1},     {t, h, f, 1}};
}

std::vector<Product> backward_products(const LayerShape& shape, int micro_batch) {
  std::vector<Product> all;
  for (const Product& p : forward_products(shape, micro_batch)) {
    all.push_back({p.m, p.k, p.n, p.batch});  // dA = dC B^T
    all.push_back({p.k, p.n, p.m, p.batch});  // dB = A^T dC
  }
  return all;
}

double rest_bytes(const LayerShape& shape, int micro_batch) {
  const double t = static_cast<double>(micro_batch) * shape.seq_len;
  const double scores = t * shape.heads * shape.seq_len;  // B s^2
  return 2 * (16 * t * shape.hidden + 2 * t * shape.ffn + 2 * scores);
}

namespace {

// Returns the bytes of the operands of a layer's backward pass, which needs more than the forward
// pass.
double operand_bytes(const LayerShape& shape, int micro_batch) {
  double a = 0, b = 0, c = 2 * rest_bytes(shape, micro_batch);
  for (const Product& p : backward_products(shape, micro_batch)) {
    const auto size = [&](std::size_t x, std::size_t y) {
      return 2.0 * static_cast<double>(p.batch) * static_cast<double>(x) * static_cast<double>(y);
    };
    a = std::max(a, size(p.m, p.k));
    b = std::max(b, size(p.k, p.n));
    c = std::max(c, size(p.m, p.n));
  }
  return a + b + c;
}

}  // namespace

std::vector<int> fitting_micro_batches(const LayerShape& shape, double bytes) {
  std::vector<int> fitting;
  for (int micro_batch = 1; micro_batch <= 64; micro_batch *= 2) {
    if (operand_bytes(shape, micro_batch) > bytes) break;
    fitting.push_back(micro_batch);
  }
  return fitting;
}

}  // namespace lambcast::cuda
