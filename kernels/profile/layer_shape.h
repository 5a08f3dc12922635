// The matrix products and bytes of one transformer layer, as `lambcast profile` times them.
//
// Tokens t = micro_batch * seq_len, head size d = hidden / heads, B = micro_batch * heads. Products
// as m x n x k, fp16 with fp32 accumulation:
//
//   forward   t x 3h x h (query, key, value)   B of s x s x d (scores)   B of s x d x s (context)
//             t x h x h (output)               t x ffn x h               t x h x ffn
//   backward  for every product two of the same size: by input and by weight
//
// Memory-bound work (normalisation, bias, dropout, residual, softmax, activation) is represented by
// one device copy of the same bytes, counted for fused fp16 kernels: forward
//
//   2 bytes * (16 t h + 2 t ffn + 2 B s^2), and twice that backward.
#pragma once

#include <cstddef>
#include <vector>

namespace lambcast::cuda {

struct LayerShape {
  int hidden = 0, heads = 0, ffn = 0, seq_len = 0;
};

// `batch` products C[m x n] = A[m x k] B[k x n].
struct Product {
  std::size_t m = 0, n = 0, k = 0, batch = 1;
};

// Returns the products of a layer; the backward list has two for each forward product.
std::vector<Product> forward_products(const LayerShape& shape, int micro_batch);
std::vector<Product> backward_products(const LayerShape& shape, int micro_batch);
// Returns the bytes of memory-bound work in the forward pass.
double rest_bytes(const LayerShape& shape, int micro_batch);
// Returns the micro batches 1, 2, 4, ... 64 whose operands take at most `bytes`; none if 1 does not
// fit.
std::vector<int> fitting_micro_batches(const LayerShape& shape, double bytes);

// Returns the layers of BERT-Base, BERT-Large at both sequence lengths, GPT-2 XL, Llama 2 7B and
// GPT-3.
std::vector<LayerShape> profiled_layers();

}  // namespace lambcast::cuda
