#include "kernels/reference/quantisation.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "kernels/reference/low_rank.h"
#include "kernels/reference/sparse.h"

using namespace lambcast;
using namespace lambcast::reference;
using Values = std::vector<float>;

TEST_CASE("every finite code of fp8 converts back, and values are rounded to the nearest") {
  for (const WireFormat format : {WireFormat::fp8_e4m3, WireFormat::fp8_e5m2}) {
    const float largest = format == WireFormat::fp8_e4m3 ? 448.0f : 57344.0f;
    std::vector<float> codes;
    for (int bits = 0; bits < 256; ++bits) {
      const float value = from_fp8(static_cast<std::uint8_t>(bits), format);
      if (std::fabs(value) > largest) continue;  // codes of NaN and infinity
      CHECK(to_fp8(value, format) == bits);
      if (bits < 128) codes.push_back(value);
    }
    CHECK(codes.back() == largest);
    for (std::size_t i = 0; i + 1 < codes.size(); ++i) {
      REQUIRE(codes[i] < codes[i + 1]);
      const float middle =
          (codes[i] + codes[i + 1]) / 2;  // exact in float; a tie is rounded to even
      REQUIRE(to_fp8(middle, format) == i + i % 2);
      REQUIRE(to_fp8(std::nextafter(middle, 0.0f), format) == i);
      REQUIRE(to_fp8(-std::nextafter(middle, 1e9f), format) == 128 + i + 1);
    }
    CHECK(from_fp8(to_fp8(1e9f, format), format) == largest);
  }
  CHECK(from_fp8(0x38, WireFormat::fp8_e4m3) == 1);
  CHECK(from_fp8(0x3c, WireFormat::fp8_e5m2) == 1);
  CHECK(from_fp8(1, WireFormat::fp8_e4m3) == 0x1p-9f);
}

TEST_CASE("blocks of integers by hand") {
  // int4, blocks of 3: scales 7/7 and 14/7; 1.5 and 2.5 tie to even.
  const Quantiser q{WireFormat::int4, 3};
  const Message message = quantise(Values{7, 1.5f, -2.5f, 14, -14}, q);
  CHECK(message.scales == Values{1, 2});
  CHECK(message.payload == std::vector<std::uint8_t>{0x27, 0x7e, 0x09});
  CHECK(message.bytes() == 11);
  Values back(5);
  dequantise(message, q, back);
  CHECK(back == Values{7, 2, -2, 14, -14});
  Values c{7, 1.5f, -2.5f, 14, -14};
  quantise_owed(c, q);
  CHECK(c == Values{0, -0.5f, -0.5f, 0, 0});
  Values mean(5);
  dequantise_sum(std::vector<Message>{message, message}, q, 0.25f, mean);
  CHECK(mean == Values{3.5f, 1, -1, 7, -7});
  CHECK(quantise(Values{0, 0}, {WireFormat::int8, 0}).scales == Values{0});
}

TEST_CASE("the largest magnitudes are sent; of equal ones, the first") {
  CHECK(top_k_indices(Values{1, -3, 2, 3, -3}, 3) == std::vector<std::uint32_t>{1, 3, 4});
  CHECK(top_k_indices(Values{1, 1, 1, 1}, 2) == std::vector<std::uint32_t>{0, 1});
  CHECK(top_k_indices(Values{1, NAN, 9}, 1) == std::vector<std::uint32_t>{1});
  CHECK(top_k_indices(Values{1, 2}, 0).empty());
  CHECK(top_k_indices(Values{1, 2}, 2) == std::vector<std::uint32_t>{0, 1});
  Values c{1, -3, 2};
  const std::vector<std::uint32_t> indices{0, 1};
  CHECK(take(c, indices) == Values{1, -3});
  CHECK(c == Values{0, 0, 2});
}

TEST_CASE("random indices are one in every bucket, each element equally likely") {
  std::vector<int> seen(103);
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    const auto indices = random_k_indices(seed, 10, 103);
    for (std::size_t i = 0; i < 10; ++i) {
      REQUIRE(indices[i] >= i * 103 / 10);
      REQUIRE(indices[i] < (i + 1) * 103 / 10);
      ++seen[indices[i]];
    }
  }
  // 4000 selections from buckets of 10 or 11 elements: 364 or 400 for each element, with a
  // deviation of 19.
  for (const int count : seen) CHECK(std::abs(count - 390) < 110);
}

TEST_CASE("a dependent column of P becomes zero, the others are orthonormal") {
  // The columns are a, 2 a and b.
  Values p{1, 2, 0, 1, 2, 1, 0, 0, 2};
  orthonormalise(p, 3, 3);
  const float half = std::sqrt(0.5f);
  CHECK(p[0] == Approx(half));
  CHECK(p[1] == 0);
  CHECK(p[4] == 0);
  double squares = 0, dot = 0;
  for (int i = 0; i < 3; ++i) {
    squares += p[3 * i + 2] * p[3 * i + 2];
    dot += p[3 * i] * p[3 * i + 2];
  }
  CHECK(squares == Approx(1));
  CHECK(dot == Approx(0).margin(1e-7));
}
