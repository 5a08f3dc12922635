#include "kernels/reference/half.h"

#include <bit>
#include <cmath>

namespace lambcast::reference {
namespace {

constexpr std::uint16_t canonical_nan = 0x7fff;

std::uint16_t to_bfloat16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

std::uint16_t to_binary16(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const float magnitude = std::fabs(value);
  if (magnitude >= 65520.0f) return static_cast<std::uint16_t>(sign | 0x7c00u);
  std::uint32_t half = 0;
  if (magnitude < 0x1p-14f) {
    // Subnormal: a multiple of 2^-24; nearbyint rounds ties to even.
    half = static_cast<std::uint32_t>(std::nearbyint(magnitude * 0x1p24f));
  } else {
    // Rebiases the exponent (127 to 15) and rounds the 13 dropped bits; a carry goes into the
    // exponent.
    const std::uint32_t m = std::bit_cast<std::uint32_t>(magnitude) - ((127u - 15u) << 23);
    half = (m + 0xfffu + ((m >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | half);
}

float from_binary16(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 0x1f;
  const float fraction = static_cast<float>(bits & 0x3ff);
  float magnitude = 0;
  if (exponent == 0x1f) {
    magnitude = fraction == 0 ? HUGE_VALF : NAN;
  } else if (exponent == 0) {
    magnitude = fraction * 0x1p-24f;
  } else {
    magnitude = std::ldexp(1024.0f + fraction, exponent - 25);
  }
  return bits & 0x8000u ? -magnitude : magnitude;
}

}  // namespace

std::uint16_t to_half(float value, HalfFormat format) {
  if (std::isnan(value)) return canonical_nan;
  return format == HalfFormat::bf16 ? to_bfloat16(value) : to_binary16(value);
}

float from_half(std::uint16_t bits, HalfFormat format) {
  return format == HalfFormat::bf16 ? std::bit_cast<float>(std::uint32_t{bits} << 16)
                                    : from_binary16(bits);
}

}  // namespace lambcast::reference
