// Codes of the kernels compared with the reference, number by number.
#include "kernels/cuda/wire_code.cuh"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>

#include "kernels/reference/quantisation.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

template <typename Code>
unsigned reference_code(float x, float scale, WireFormat format) {
  const float ratio = x / scale;
  if (scale == 0 || !std::isfinite(ratio)) return 0;
  if (format != WireFormat::int8 && format != WireFormat::int4)
    return reference::to_fp8(ratio, format);
  const float rounded = std::clamp(std::nearbyint(ratio), -Code::limit, Code::limit);
  return static_cast<unsigned>(static_cast<int>(rounded)) & ((1u << Code::bits) - 1);
}
float reference_value(unsigned code, WireFormat format) {
  if (format == WireFormat::int8) return static_cast<std::int8_t>(code);
  if (format == WireFormat::int4) return static_cast<float>(static_cast<int>(code ^ 8) - 8);
  return reference::from_fp8(static_cast<std::uint8_t>(code), format);
}
bool same(float a, float b) { return to_bits(a) == to_bits(b) || (a != a && b != b); }

template <typename Code>
bool encodes(float x, float scale, WireFormat format) {
  const unsigned code = reference_code<Code>(x, scale, format);
  const Encoded encoded = encode<Code>({{x, 0, 0, 0}}, Scale(scale));
  return (encoded.codes & ((1u << Code::bits) - 1)) == code &&
         same(encoded.rest.at[0], x - reference_value(code, format) * scale);
}
bool all_encode(float x, float scale) {
  return encodes<IntegerCode<8>>(x, scale, WireFormat::int8) &&
         encodes<IntegerCode<4>>(x, scale, WireFormat::int4) &&
         encodes<FloatCode<3, 7>>(x, scale, WireFormat::fp8_e4m3) &&
         encodes<FloatCode<2, 15>>(x, scale, WireFormat::fp8_e5m2);
}

template <typename Code>
void says_what_the_reference_says(WireFormat format) {
  constexpr unsigned per_code = (1u << Code::bits) - 1;
  for (unsigned code = 0; code <= per_code; ++code) {
    unsigned codes = 0;
    for (unsigned i = 0; i < 4; ++i) codes |= ((code + 67 * i) & per_code) << (Code::bits * i);
    const Quad values = Code::values(codes, Code::mask);
    for (unsigned i = 0; i < 4; ++i)
      REQUIRE(same(values.at[i], reference_value((code + 67 * i) & per_code, format)));
  }
}

// Returns a float of any exponent; every fourth mantissa is close to a power of two.
float some_scale(std::mt19937& bits) {
  const unsigned mantissa = bits() & 0x7fffff, few = bits() & 0xff, kind = bits() % 8;
  return from_bits((bits() % 255) << 23 | (kind == 0   ? few
                                           : kind == 1 ? 0x7fffff - few
                                                       : mantissa));
}

}  // namespace

TEST_CASE("every code has the reference's value") {
  says_what_the_reference_says<IntegerCode<8>>(WireFormat::int8);
  says_what_the_reference_says<IntegerCode<4>>(WireFormat::int4);
  says_what_the_reference_says<FloatCode<3, 7>>(WireFormat::fp8_e4m3);
  says_what_the_reference_says<FloatCode<2, 15>>(WireFormat::fp8_e5m2);
}

TEST_CASE(
    "a quotient by the scale's reciprocal has the bits of the division, and so does its code") {
  std::mt19937 bits(1);
  unsigned compared = 0;
  for (int i = 0; i < 300'000; ++i) {
    const float scale = some_scale(bits);
    // Midpoints between two codes of integers and of e4m3, or one bit away; or values of any size.
    const auto tie = static_cast<std::uint8_t>(bits() % 0x7e);
    const float halves = static_cast<float>(static_cast<int>(bits() % 510) - 255) / 2,
                middle = (reference::from_fp8(tie, WireFormat::fp8_e4m3) +
                          reference::from_fp8(tie + 1, WireFormat::fp8_e4m3)) /
                         2,
                any = std::ldexp(static_cast<float>(bits()), static_cast<int>(bits() % 60) - 80);
    for (const float ratio : {halves, middle, -any}) {
      const float exact = std::min(std::fabs(ratio) * scale, 0x1.fffffep127f),
                  x = std::copysign(from_bits(to_bits(exact) + bits() % 3 - 1), ratio);
      const float quotient = x / scale;
      if (!std::isfinite(x) || scale == 0 || !(std::fabs(quotient) < 60000)) continue;
      const bool same_quotient =
          std::fabs(quotient) < 0x1p-40f || to_bits(Scale(scale).quotient(x)) == to_bits(quotient);
      if (!same_quotient || !all_encode(x, scale)) FAIL(x << " / " << scale);
      ++compared;
    }
  }
  CHECK(compared > 500'000);
}

TEST_CASE("codes of zeros, of infinities and NaN, and of scales that do not divide") {
  std::mt19937 bits(2);
  constexpr float tiny = 0x1p-149f;
  for (const float scale : {0.0f, tiny, 0x1p-130f, 0x1p-60f, 1.0f, 0x1p60f, 0x1p118f, HUGE_VALF,
                            std::nanf(""), some_scale(bits)})
    for (const float x : {0.0f, tiny, std::min(scale, 1.0f), scale, HUGE_VALF, std::nanf("")}) {
      INFO(x << " / " << scale);
      // Values that are not finite only occur with scales that are not finite.
      if (!std::isfinite(x) && std::isfinite(scale)) continue;
      if (scale == tiny && x > 1) continue;
      CHECK(all_encode(x, scale));
      CHECK(all_encode(-x, scale));
    }
}
