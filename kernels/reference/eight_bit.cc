#include "kernels/reference/eight_bit.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

std::array<float, 256> made(Sign sign) {
  std::vector<float> values{0, 1};
  for (int decade = 0; decade < 7; ++decade) {
    const double size = std::pow(10.0, decade - 6);
    const int steps = 1 << (decade + (sign == Sign::positive));
    for (int i = 0; i < steps; ++i) {
      const double middle = size * (0.1 + 0.9 * (i + 0.5) / steps);
      values.push_back(static_cast<float>(middle));
      if (sign == Sign::both) values.push_back(static_cast<float>(-middle));
    }
  }
  std::sort(values.begin(), values.end());
  LAMBCAST_CHECK(values.size() == 256, "{} values", values.size());
  std::array<float, 256> map;
  std::copy(values.begin(), values.end(), map.begin());
  return map;
}

}  // namespace

const std::array<float, 256>& dynamic_map(Sign sign) {
  static const std::array<float, 256> both = made(Sign::both), positive = made(Sign::positive);
  return sign == Sign::both ? both : positive;
}

std::uint8_t nearest(const std::array<float, 256>& map, float x) {
  const auto above = std::lower_bound(map.begin(), map.end(), x);
  if (above == map.begin()) return 0;
  if (above == map.end()) return 255;
  const auto below = above - 1;
  return static_cast<std::uint8_t>((x - *below <= *above - x ? below : above) - map.begin());
}

void store(std::span<const float> x, EightBitState& s, Sign sign) {
  const auto& map = dynamic_map(sign);
  s.codes.resize(x.size());
  s.largest.assign((x.size() + s.block - 1) / s.block, 0.0f);
  for (std::size_t e = 0; e < x.size(); ++e) {
    float& largest = s.largest[e / s.block];
    largest = std::max(largest, std::fabs(x[e]));
  }
  for (std::size_t e = 0; e < x.size(); ++e) {
    const float largest = s.largest[e / s.block];
    s.codes[e] = nearest(map, largest == 0 ? 0.0f : x[e] / largest);
  }
}

void load(const EightBitState& s, Sign sign, std::span<float> x) {
  const auto& map = dynamic_map(sign);
  for (std::size_t e = 0; e < x.size(); ++e) x[e] = map[s.codes[e]] * s.largest[e / s.block];
}

double clip(PercentileClipping& c, double norm, int step) {
  c.squares[static_cast<std::size_t>(step) % c.squares.size()] = norm * norm;
  if (c.percentile >= 100) return 1;
  std::array<double, 100> sorted = c.squares;
  std::sort(sorted.begin(), sorted.end());
  const double limit = std::sqrt(sorted[static_cast<std::size_t>(c.percentile)]);
  return norm > limit ? limit / norm : 1;
}

}  // namespace lambcast::reference
