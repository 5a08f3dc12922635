#include "kernels/reference/compression.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

bool positive(float x) { return !(x < 0); }
float sgn(float x) { return positive(x) ? 1.0f : -1.0f; }
// Returns 1 for plus.
std::uint32_t bit(std::span<const std::uint8_t> signs, std::size_t e) {
  return (std::uint32_t{signs[e / 8]} >> (7 - e % 8)) & 1;
}
// Has no branch, because the next sign is unpredictable.
float with_sign(float magnitude, std::uint32_t plus) {
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) ^ ((plus ^ 1) << 31));
}

// Turns the compensated values in `c` into signs and error feedback. Only the first `counted` take
// part; the others are packed as + and have no error feedback.
float compress(std::span<float> c, std::span<std::uint8_t> signs, std::size_t counted) {
  LAMBCAST_CHECK(c.size() % 8 == 0 && signs.size() == c.size() / 8, "{} elements, {} bytes",
                 c.size(), signs.size());
  std::fill(c.begin() + static_cast<std::ptrdiff_t>(counted), c.end(), 0.0f);
  const float scale = rms(c.first(counted), counted);
  pack_signs(c, signs);
  for (float& value : c.first(counted)) value -= scale * sgn(value);
  return scale;
}

}  // namespace

void pack_signs(std::span<const float> x, std::span<std::uint8_t> signs, SignRule rule) {
  LAMBCAST_CHECK(signs.size() == (x.size() + 7) / 8, "{} bytes for {} signs", signs.size(),
                 x.size());
  std::fill(signs.begin(), signs.end(), std::uint8_t{0});
  for (std::size_t e = 0; e < x.size(); ++e) {
    const unsigned plus = rule == SignRule::sign_bit ? !std::signbit(x[e]) : positive(x[e]);
    signs[e / 8] = static_cast<std::uint8_t>(signs[e / 8] | (plus << (7 - e % 8)));
  }
}

void unpack_signs(std::span<const std::uint8_t> signs, std::span<float> x) {
  LAMBCAST_CHECK(signs.size() == (x.size() + 7) / 8, "{} bytes for {} signs", signs.size(),
                 x.size());
  for (std::size_t e = 0; e < x.size(); ++e) x[e] = with_sign(1.0f, bit(signs, e));
}

float rms(std::span<const float> x, std::size_t count) {
  if (count == 0) return 0.0f;
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return static_cast<float>(std::sqrt(sum / static_cast<double>(count)));
}

float worker_phase(std::span<const float> x, std::span<float> error, std::span<std::uint8_t> signs,
                   Padding padding) {
  LAMBCAST_CHECK(x.size() <= error.size(), "{} of {} elements", x.size(), error.size());
  for (std::size_t e = 0; e < x.size(); ++e) error[e] += x[e];
  return compress(error, signs, padding == Padding::counted ? error.size() : x.size());
}

float server_phase(std::span<const std::uint8_t> received, std::span<const float> worker_scales,
                   std::span<float> error, std::span<std::uint8_t> signs, std::size_t real,
                   Padding padding) {
  const std::size_t n = worker_scales.size();
  const std::size_t bytes = signs.size();
  LAMBCAST_CHECK(received.size() == n * bytes, "{} bytes from {} ranks", received.size(), n);
  const float share = static_cast<float>(1.0 / static_cast<double>(n));
  for (std::size_t e = 0; e < error.size(); ++e) {
    float sum = 0, of_four = 0;
    for (std::size_t i = 0; i < n; ++i) {
      of_four += with_sign(worker_scales[i] * share, bit(received.subspan(i * bytes, bytes), e));
      if (i % 4 < 3 && i + 1 < n) continue;
      sum += of_four;
      of_four = 0;
    }
    error[e] += sum;
  }
  return compress(error, signs, padding == Padding::counted ? error.size() : real);
}

void decode(std::span<const std::uint8_t> signs, std::span<const float> scales, std::size_t chunk,
            std::span<float> x) {
  LAMBCAST_CHECK(x.size() <= signs.size() * 8, "{} elements, {} bytes", x.size(), signs.size());
  for (std::size_t begin = 0; begin < x.size(); begin += chunk) {
    const float scale = scales[begin / chunk];
    const std::size_t end = std::min(begin + chunk, x.size());
    for (std::size_t e = begin; e < end; ++e) x[e] = with_sign(scale, bit(signs, e));
  }
}

void update_momentum(std::span<float> m, std::span<const float> g, double beta1, float scaling) {
  LAMBCAST_CHECK(m.size() == g.size(), "{} and {} elements", m.size(), g.size());
  const float b1 = static_cast<float>(beta1);
  const float one_minus_b1 = static_cast<float>(1 - beta1);
  for (std::size_t e = 0; e < m.size(); ++e) m[e] = (b1 * m[e] + one_minus_b1 * g[e]) * scaling;
}

void apply_mask(std::span<float> x, std::span<const float> mask) {
  LAMBCAST_CHECK(x.size() == mask.size(), "{} and {} elements", x.size(), mask.size());
  for (std::size_t e = 0; e < x.size(); ++e) x[e] *= mask[e];
}

}  // namespace lambcast::reference
