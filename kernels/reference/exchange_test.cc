// Messages that replace gradients, computed by hand: PowerSGD's factors, sparse values, outer
// steps.
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/reference/chunk_top_k.h"
#include "kernels/reference/dct_sign.h"
#include "kernels/reference/local_steps.h"
#include "kernels/reference/lossless.h"
#include "kernels/reference/low_rank.h"
#include "kernels/reference/sparse.h"
#include "sim/base/check.h"

using namespace lambcast;
using namespace lambcast::reference;
using Values = std::vector<float>;

TEST_CASE("PowerSGD's products by hand") {
  // M = (1 2 3; 4 5 6), 2 x 3, at rank 2.
  const MatrixShape shape{2, 3};
  Values m{1, 2, 3, 4, 5, 6}, p(4), back(6), x(6);
  const Values q{1, 0, 0, 1, 1, -1};
  project(m, shape, q, 2, p);
  CHECK(p == Values{1 + 3, 2 - 3, 4 + 6, 5 - 6});
  const Values rows{1, 10, 100, 1000};
  back_project(m, shape, rows, 2, back);
  CHECK(back == Values{1 + 400, 10 + 4000, 2 + 500, 20 + 5000, 3 + 600, 30 + 6000});
  // P Q', and the remainder of M.
  expand(rows, q, shape, 2, m, x);
  CHECK(x == Values{1, 10, 1 - 10, 100, 1000, 100 - 1000});
  CHECK(m == Values{0, -8, 12, -96, -995, 906});
}

TEST_CASE("a matrix of rank one equals its factors, and a dependent column becomes zero") {
  const MatrixShape shape{3, 2};
  const Values a{1, 2, 2}, b{3, -4};
  Values m;
  for (const float row : a)
    for (const float column : b) m.push_back(row * column);
  Values p(6), q{1, 2, 0, 1}, x(6);
  project(m, shape, q, 2, p);
  orthonormalise(p, 3, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(p[2 * i] == Approx(a[i] / 3));
    CHECK(p[2 * i + 1] == 0);
  }
  back_project(m, shape, p, 2, q);
  expand(p, q, shape, 2, m, x);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(x[i] == Approx(a[i / 2] * b[i % 2]));
    CHECK(m[i] == Approx(0).margin(1e-5));
  }
}

TEST_CASE("sparse values are added where they belong, and no others") {
  Values x{1, 2, 3, 4};
  const std::vector<std::uint32_t> indices{3, 1, 0};
  const Values values{10, 20, 40};
  add_at(x, std::span(indices).first(2), std::span(values).first(2), 0.5f);
  CHECK(x == Values{1, 12, 3, 9});
  CHECK_THROWS_AS(add_at(x, indices, std::span(values).first(2), 1), InternalError);
  Values c{5, 6, 7};
  CHECK(take(c, std::vector<std::uint32_t>{0, 2}) == Values{5, 7});
  CHECK(c == Values{0, 6, 0});
}

TEST_CASE("chunks: the largest values, by hand") {
  // Two chunks, the second of 3 elements, all of which are sent. The values are 9, -9, 3, 5 and -4,
  // 0, 2, with mean 6/7 and spread 5.49, so the bins end at -7.4, 6/7 and 9.1.
  Values c(4099);
  c[7] = 9, c[8] = -9, c[100] = 3, c[4095] = 5, c[4096] = -4, c[4098] = 2, c[50] = 0.5f;
  const ChunkMessage message = encode_largest(c, 4);
  CHECK(message.size() == 16 + (7 * 14 + 7) / 8);
  const Values sent = decode_largest(message, c.size(), 4);
  const float low = -9, below = -4 / 2.f, above = (9 + 3 + 5 + 2) / 4.f;
  CHECK(sent[7] == above);
  CHECK(sent[8] == low);
  CHECK(sent[4096] == below);
  CHECK(sent[4097] == below);
  CHECK(sent[4098] == above);
  CHECK(sent[50] == 0);
  c[7] = NAN;
  CHECK(std::isnan(decode_largest(encode_largest(c, 4), c.size(), 4)[7]));
}

TEST_CASE("signs of cosines: an orthonormal transform, and the value of one decoded coefficient") {
  std::vector<double> block(4096);
  for (std::size_t e = 0; e < 4096; ++e) block[e] = std::sin(0.37 * double(e));
  const std::vector<double> before = block;
  cosine_transform(block, false);
  // Coefficient (2, 3) by its definition, and the sum of squares.
  double coefficient = 0, squares = 0, after = 0;
  const auto cosine = [](std::size_t i, std::size_t j) {
    return std::sqrt(2.0 / 64) *
           std::cos(std::numbers::pi * (2.0 * double(j) + 1) * double(i) / 128);
  };
  for (std::size_t e = 0; e < 4096; ++e) {
    coefficient += cosine(2, e / 64) * cosine(3, e % 64) * before[e];
    squares += before[e] * before[e];
    after += block[e] * block[e];
  }
  CHECK(block[2 * 64 + 3] == Approx(coefficient));
  CHECK(after == Approx(squares));
  cosine_transform(block, true);
  for (std::size_t e = 0; e < 4096; e += 97) CHECK(block[e] == Approx(before[e]).margin(1e-12));
  // A buffer that is one cosine with a negative sign is decoded without error.
  Values c(4096);
  for (std::size_t e = 0; e < 4096; ++e) c[e] = float(-5 * cosine(2, e / 64) * cosine(3, e % 64));
  const Values sent = decode_cosines(encode_cosines(c, 1), 4096, 1);
  for (std::size_t e = 0; e < 4096; e += 61) CHECK(sent[e] == Approx(c[e]).margin(1e-6));
}

TEST_CASE("bf16 without loss: every bit comes back, in the number of bytes of the blocks") {
  std::vector<std::uint16_t> values(1000);
  for (std::size_t e = 0; e < values.size(); ++e)
    values[e] = static_cast<std::uint16_t>(e * 40503u);
  values[1] = 0x7fc0, values[2] = 0xff80, values[3] = 0;  // NaN, -inf, 0
  CHECK(decode_lossless(encode_lossless(values), values.size()) == values);
  // 512 values with exponents 120 to 123, then 3 values with one exponent: 512 (8 + 2) and 3 (8 +
  // 0) bits, and 12 bits per block.
  values.resize(515);
  for (std::size_t e = 0; e < 515; ++e)
    values[e] = static_cast<std::uint16_t>((e < 512 ? 120 + e % 4 : 90) << 7 | e % 128);
  const ChunkMessage message = encode_lossless(values);
  CHECK(message.size() == (2 * 12 + 512 * 10 + 3 * 8 + 7) / 8);
  CHECK(decode_lossless(message, values.size()) == values);
}

TEST_CASE("an outer step needs as many means as anchors, and velocities only with momentum") {
  Values anchor{4, 4}, velocity(2);
  const Values mean{3, 2};
  outer_step(anchor, mean, {}, {});
  CHECK(anchor == mean);
  CHECK_THROWS_AS(outer_step(anchor, Values{1}, {}, {}), InternalError);
  CHECK_THROWS_AS(outer_step(anchor, mean, velocity, {}), InternalError);
  CHECK_THROWS_AS(outer_step(anchor, mean, {}, {.momentum = 0.9}), InternalError);
}
