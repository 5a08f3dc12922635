#include "kernels/reference/gradient.h"

#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

template <typename T, typename AsFloat>
bool any_non_finite(std::span<const T> g, AsFloat as_float) {
  return std::any_of(g.begin(), g.end(), [&](T x) { return !std::isfinite(as_float(x)); });
}

template <typename T, typename AsFloat>
float norm_of(std::span<const T> g, AsFloat as_float) {
  double sum = 0;
  for (const T element : g) {
    const double value = as_float(element);
    sum += value * value;
  }
  return static_cast<float>(std::sqrt(sum));
}

float itself(float g) { return g; }

struct Reader {
  HalfFormat format;
  float operator()(std::uint16_t g) const { return from_half(g, format); }
};

}  // namespace

bool overflows(std::span<const float> g) { return any_non_finite(g, itself); }
bool overflows(std::span<const std::uint16_t> half_g, HalfFormat format) {
  return any_non_finite(half_g, Reader{format});
}

float gradient_norm(std::span<const float> g) { return norm_of(g, itself); }
float gradient_norm(std::span<const std::uint16_t> half_g, HalfFormat format) {
  return norm_of(half_g, Reader{format});
}

float clip_factor(double norm, double loss_scale, double limit) {
  double combined = loss_scale;
  if (limit > 0) {
    const double clip = (norm / loss_scale + 1e-6) / limit;
    if (clip > 1) combined = clip * loss_scale;
  }
  return static_cast<float>(1.0 / combined);
}

void unscale(std::span<const std::uint16_t> half_g, std::span<float> g, float factor,
             HalfFormat format) {
  LAMBCAST_CHECK(half_g.size() == g.size(), "{} and {} elements", half_g.size(), g.size());
  for (std::size_t e = 0; e < g.size(); ++e) g[e] = from_half(half_g[e], format) * factor;
}

void unscale(std::span<float> g, float factor) {
  for (float& value : g) value *= factor;
}

double misscaling(LossScaling release, int accumulation_steps, double loss_scale,
                  bool engine_allreduce) {
  switch (release) {
    case LossScaling::right:
      return 1;
    case LossScaling::no_accumulation_division:
      return engine_allreduce ? 1 : accumulation_steps;
    case LossScaling::no_loss_scale_multiplication:
      return 1 / loss_scale;
  }
  return 1;
}

}  // namespace lambcast::reference
