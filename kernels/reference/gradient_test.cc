#include "kernels/reference/gradient.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/reference/half.h"

using namespace lambcast;
using namespace lambcast::reference;

TEST_CASE("every binary16 value survives the round trip through float") {
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const std::uint16_t half = static_cast<std::uint16_t>(bits);
    const float value = from_half(half);
    if (std::isnan(value)) {
      CHECK(to_half(value) == 0x7fff);
    } else if (to_half(value) != half) {
      FAIL("half " << bits << " came back as " << to_half(value));
    }
  }
}

TEST_CASE("binary16 rounds to nearest, ties to even") {
  CHECK(to_half(1.0f + 0x1p-11f) == 0x3c00);      // halfway between 1 and 1 + 2^-10: even is 1
  CHECK(to_half(1.0f + 3 * 0x1p-11f) == 0x3c02);  // halfway: even is 1 + 2^-9
  CHECK(to_half(1.0f + 0x1.1p-11f) == 0x3c01);
  CHECK(to_half(65519.996f) == 0x7bff);  // below the midpoint of 65504 and 2^16
  CHECK(to_half(65520.0f) == 0x7c00);
  CHECK(to_half(0x1p-25f) == 0);  // half of the smallest subnormal: even is 0
  CHECK(to_half(0x1.8p-24f) == 2);
  CHECK(to_half(-0.0f) == 0x8000);
}

TEST_CASE("bf16 is the upper half of a float, rounded to nearest, ties to even") {
  const auto bf16 = [](float x) { return to_half(x, HalfFormat::bf16); };
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = from_half(static_cast<std::uint16_t>(bits), HalfFormat::bf16);
    const std::uint32_t back = bf16(value);
    if (std::isnan(value) ? back != 0x7fff : back != bits) FAIL(bits << " came back as " << back);
  }
  CHECK(bf16(1.0f + 0x1p-8f) == 0x3f80);      // halfway between 1 and 1 + 2^-7: even is 1
  CHECK(bf16(1.0f + 3 * 0x1p-8f) == 0x3f82);  // halfway: even is 1 + 2^-6
  CHECK(bf16(1.0f + 0x1.1p-8f) == 0x3f81);
  CHECK(bf16(3.4e38f) == 0x7f80);  // beyond the midpoint above the largest, 3.3895e38
  CHECK(bf16(-0.0f) == 0x8000);
  CHECK(bf16(0x1.4p-133f) == 1);  // in units of the smallest subnormal, 2^-133
}

TEST_CASE("overflow is any infinity or NaN, and no other value") {
  std::vector<float> g(100, 3e38f);
  CHECK_FALSE(overflows(g));
  g[99] = std::numeric_limits<float>::infinity();
  CHECK(overflows(g));
  g[99] = std::numeric_limits<float>::quiet_NaN();
  CHECK(overflows(g));
  const std::vector<std::uint16_t> largest(4, 0x7bff), infinite(4, 0xfc00);
  CHECK_FALSE(overflows(largest));
  CHECK(overflows(infinite));
  const std::vector<std::uint16_t> wide(4, 0x7f7f), beyond(4, 0xff80);
  CHECK_FALSE(overflows(wide, HalfFormat::bf16));
  CHECK(overflows(beyond, HalfFormat::bf16));
}

TEST_CASE("gradients are clipped by the norm of the unscaled gradient") {
  // g = (3, 4) at loss scale 2: norm 5 before unscaling, 2.5 after. Limit 1: clip = 2.5 + 1e-6, and
  // the factor is 1 / (2.5 * 2), so that the result has norm 1.
  const std::vector<std::uint16_t> half_g{to_half(3), to_half(4)};
  const float norm = gradient_norm(half_g);
  CHECK(norm == 5.0f);
  const float factor = clip_factor(norm, 2, 1);
  CHECK(factor == Approx(1 / 5.0).epsilon(1e-6));
  std::vector<float> g(2);
  unscale(half_g, g, factor);
  CHECK(gradient_norm(g) == Approx(1).epsilon(1e-6));
  const std::vector<std::uint16_t> in_bf16{to_half(3, HalfFormat::bf16), 0x4080};  // 4
  CHECK(gradient_norm(in_bf16, HalfFormat::bf16) == 5.0f);
  unscale(in_bf16, g, factor, HalfFormat::bf16);
  CHECK(gradient_norm(g) == Approx(1).epsilon(1e-6));
  // Below the limit, or without a limit, only the loss scale is removed.
  CHECK(clip_factor(norm, 2, 10) == 0.5f);
  CHECK(clip_factor(norm, 2, 0) == 0.5f);
  // The 1e-6 that is added to the norm matters if the limit is about as small.
  CHECK(clip_factor(1e-6, 1, 1e-6) == Approx(0.5));
  unscale(std::span<float>(g), 10.0f);
  CHECK(gradient_norm(g) == Approx(10).epsilon(1e-6));
}

TEST_CASE("two ranges of releases scale the gradients of 1-bit optimizers wrongly") {
  CHECK(misscaling(LossScaling::right, 8, 65536, false) == 1);
  CHECK(misscaling(LossScaling::no_accumulation_division, 8, 65536, true) == 1);
  CHECK(misscaling(LossScaling::no_accumulation_division, 8, 65536, false) == 8);
  CHECK(misscaling(LossScaling::no_loss_scale_multiplication, 8, 65536, true) == 1 / 65536.0);
}
