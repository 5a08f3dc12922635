#include "kernels/reference/quantisation.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/reference/half.h"
#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

struct Fp8 {
  int mantissa_bits, bias;
  float largest;
};
Fp8 fp8_of(WireFormat format) {
  return format == WireFormat::fp8_e4m3 ? Fp8{3, 7, 448.0f} : Fp8{2, 15, 57344.0f};
}

float limit_of(WireFormat format) {
  switch (format) {
    case WireFormat::int8:
      return 127;
    case WireFormat::int4:
      return 7;
    default:
      return fp8_of(format).largest;
  }
}

// Returns the largest magnitude, or NaN if there is one.
float largest_magnitude(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) {
    if (!(std::fabs(value) <= largest)) largest = std::fabs(value);
    if (std::isnan(value)) return value;
  }
  return largest;
}

// Returns the code of x / s; values that are not finite are sent in the scale.
std::uint8_t code_of(float ratio, WireFormat format) {
  if (!std::isfinite(ratio)) return 0;
  if (format != WireFormat::int8 && format != WireFormat::int4) return to_fp8(ratio, format);
  const float limit = limit_of(format);
  return static_cast<std::uint8_t>(
      static_cast<std::int8_t>(std::clamp(std::nearbyint(ratio), -limit, limit)));
}
float value_of(std::uint8_t code, WireFormat format) {
  if (format == WireFormat::int8) return static_cast<std::int8_t>(code);
  if (format == WireFormat::int4) return static_cast<float>(((code & 15) ^ 8) - 8);
  return from_fp8(code, format);
}

std::size_t block_of(const Quantiser& q, std::size_t elements) {
  return q.block == 0 ? std::max<std::size_t>(elements, 1) : q.block;
}

HalfFormat half_format(WireFormat plain) {
  return plain == WireFormat::bf16 ? HalfFormat::bf16 : HalfFormat::fp16;
}

Message plain(std::span<const float> x, WireFormat format) {
  Message message;
  for (const float value : x) {
    const std::uint32_t bits = format == WireFormat::fp32 ? std::bit_cast<std::uint32_t>(value)
                                                          : to_half(value, half_format(format));
    for (std::size_t byte = 0; byte < payload_bytes(format, 1); ++byte) {
      message.payload.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
    }
  }
  return message;
}
void from_plain(const Message& message, WireFormat format, std::span<float> x) {
  const std::size_t width = payload_bytes(format, 1);
  for (std::size_t e = 0; e < x.size(); ++e) {
    std::uint32_t bits = 0;
    for (std::size_t byte = 0; byte < width; ++byte) {
      bits |= static_cast<std::uint32_t>(message.payload[e * width + byte]) << (8 * byte);
    }
    x[e] = format == WireFormat::fp32
               ? std::bit_cast<float>(bits)
               : from_half(static_cast<std::uint16_t>(bits), half_format(format));
  }
}

bool is_plain(WireFormat format) { return scale_count({format, 0}, 1) == 0; }

}  // namespace

std::uint8_t to_fp8(float value, WireFormat format) {
  const Fp8 f = fp8_of(format);
  const std::uint8_t sign = std::signbit(value) ? 0x80 : 0;
  const double magnitude = std::min(std::fabs(static_cast<double>(value)), double(f.largest));
  int exponent = 0;
  std::frexp(magnitude, &exponent);  // magnitude in [2^(exponent-1), 2^exponent)
  exponent = std::max(exponent - 1, 1 - f.bias);
  // Works in units of the last place; below 2^mantissa_bits, in units of a subnormal.
  const int units =
      static_cast<int>(std::nearbyint(std::ldexp(magnitude, f.mantissa_bits - exponent)));
  const int hidden = 1 << f.mantissa_bits;
  const int field =
      units < hidden ? units : ((exponent + f.bias) << f.mantissa_bits) + units - hidden;
  return static_cast<std::uint8_t>(sign | field);
}

float from_fp8(std::uint8_t bits, WireFormat format) {
  const Fp8 f = fp8_of(format);
  const int mantissa = bits & ((1 << f.mantissa_bits) - 1);
  const int exponent = (bits & 0x7f) >> f.mantissa_bits;
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(mantissa), 1 - f.bias - f.mantissa_bits)
                    : std::ldexp(static_cast<float>(mantissa + (1 << f.mantissa_bits)),
                                 exponent - f.bias - f.mantissa_bits);
  return bits & 0x80 ? -magnitude : magnitude;
}

Message quantise(std::span<const float> x, const Quantiser& q) {
  if (is_plain(q.format)) return plain(x, q.format);
  Message message;
  message.payload.resize(payload_bytes(q.format, x.size()));
  const std::size_t block = block_of(q, x.size());
  for (std::size_t begin = 0; begin < x.size(); begin += block) {
    const auto part = x.subspan(begin, std::min(block, x.size() - begin));
    const float scale = largest_magnitude(part) / limit_of(q.format);
    message.scales.push_back(scale);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::uint8_t code = scale == 0 ? std::uint8_t{0} : code_of(part[i] / scale, q.format);
      const std::size_t e = begin + i;
      if (q.format != WireFormat::int4)
        message.payload[e] = code;
      else
        message.payload[e / 2] |= static_cast<std::uint8_t>((code & 15) << (e % 2 * 4));
    }
  }
  return message;
}

void dequantise(const Message& message, const Quantiser& q, std::span<float> x) {
  LAMBCAST_CHECK(message.payload.size() == payload_bytes(q.format, x.size()),
                 "{} bytes for {} elements", message.payload.size(), x.size());
  if (is_plain(q.format)) return from_plain(message, q.format, x);
  const std::size_t block = block_of(q, x.size());
  for (std::size_t e = 0; e < x.size(); ++e) {
    const std::uint8_t code = q.format == WireFormat::int4
                                  ? static_cast<std::uint8_t>(message.payload[e / 2] >> (e % 2 * 4))
                                  : message.payload[e];
    x[e] = value_of(code, q.format) * message.scales[e / block];
  }
}

Message quantise_owed(std::span<float> c, const Quantiser& q) {
  const Message message = quantise(c, q);
  std::vector<float> received(c.size());
  dequantise(message, q, received);
  for (std::size_t e = 0; e < c.size(); ++e) c[e] -= received[e];
  return message;
}

void dequantise_sum(std::span<const Message> messages, const Quantiser& q, float share,
                    std::span<float> x) {
  std::vector<float> received(x.size());
  std::fill(x.begin(), x.end(), 0.0f);
  for (const Message& message : messages) {
    dequantise(message, q, received);
    for (std::size_t e = 0; e < x.size(); ++e) x[e] += received[e];
  }
  for (float& value : x) value *= share;
}

}  // namespace lambcast::reference
