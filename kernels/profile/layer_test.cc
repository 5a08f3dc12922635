#include "kernels/profile/layer.h"

#include <catch2/catch.hpp>

using namespace lambcast;
using namespace lambcast::cuda;

namespace {
double flops(const std::vector<Product>& products) {
  double sum = 0;
  for (const Product& p : products)
    sum += 2.0 * double(p.m) * double(p.n) * double(p.k) * double(p.batch);
  return sum;
}
}  // namespace

TEST_CASE("the products of a layer add up to its known number of operations") {
  // Operations per token: 2 h (4 h + 2 ffn) for the dense products and 4 s h for attention; twice
  // that backward.
  for (const LayerShape& shape : profiled_layers()) {
    for (const int micro_batch : {1, 4}) {
      const double t = micro_batch * double(shape.seq_len), h = shape.hidden;
      const double forward = t * (2 * h * (4 * h + 2.0 * shape.ffn) + 4 * shape.seq_len * h);
      CHECK(flops(forward_products(shape, micro_batch)) == forward);
      CHECK(flops(backward_products(shape, micro_batch)) == 2 * forward);
      CHECK(rest_bytes(shape, 2 * micro_batch) == 2 * rest_bytes(shape, micro_batch));
    }
  }
}

TEST_CASE("products are timed in the formats that a GPU multiplies, each shape once") {
  CHECK(multiplies(ProductFormat::fp16, 7.0));
  CHECK_FALSE(multiplies(ProductFormat::bf16, 7.5));
  CHECK_FALSE(multiplies(ProductFormat::tf32, 7.0));
  CHECK(multiplies(ProductFormat::fp32, 7.0));
  CHECK_FALSE(multiplies(ProductFormat::fp8, 8.0));
  CHECK(multiplies(ProductFormat::fp8, 9.0));
  const std::vector<Product> products = profiled_products();
  CHECK(products.size() == 24);
  for (std::size_t i = 0; i < products.size(); ++i) {
    CHECK(products[i].k % 16 == 0);  // fp8 needs rows of 16 bytes
    for (std::size_t j = 0; j < i; ++j)
      CHECK_FALSE((products[i].m == products[j].m && products[i].n == products[j].n &&
                   products[i].k == products[j].k));
  }
}

TEST_CASE("micro-batches increase as far as memory allows, to none if even one does not fit") {
  // GPT-3's backward pass: the score gradients and softmax of one sequence take gigabytes.
  const LayerShape gpt3 = profiled_layers().back();
  CHECK(fitting_micro_batches(gpt3, 1e9).empty());
  CHECK(fitting_micro_batches(gpt3, 1e12) == std::vector<int>{1, 2, 4, 8, 16, 32, 64});
  const auto some = fitting_micro_batches(gpt3, 40e9);
  CHECK(some.size() > 0);
  CHECK(some.size() < 7);
}

TEST_CASE("timings are summarised by median and interquartile range") {
  // 1 .. 9: quartiles 3, 5, 7. Even counts and single samples interpolate.
  const Timing odd = summarise({9, 1, 8, 2, 7, 3, 6, 4, 5});
  CHECK(odd.median_us == 5);
  CHECK(odd.spread_us == 4);
  CHECK(summarise({1, 2}).median_us == 1.5);
  CHECK(summarise({3}).spread_us == 0);
}
