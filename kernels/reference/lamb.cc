#include "kernels/reference/lamb.h"

#include <algorithm>
#include <cmath>

#include "kernels/bias_correction.h"
#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lambcast::reference {
namespace {

double norm(std::span<const float> x) {
  double sum = 0;
  for (const float value : x) sum += static_cast<double>(value) * value;
  return std::sqrt(sum);
}

// Clamps x; a NaN passes through.
double clamp(double x, double high, double low) {
  if (x > high) x = high;
  return x < low ? low : x;
}

}  // namespace

TrustRatio lamb_step(std::span<float> p, std::span<float> m, std::span<float> v,
                     std::span<const float> g, const LambOptions& o, int t) {
  LAMBCAST_CHECK(p.size() == m.size() && p.size() == v.size() && p.size() == g.size(),
                 "{}, {}, {} and {} elements", p.size(), m.size(), v.size(), g.size());
  const float b1 = static_cast<float>(o.beta1), one_minus_b1 = static_cast<float>(1 - o.beta1);
  const float b2 = static_cast<float>(o.beta2), one_minus_b2 = static_cast<float>(1 - o.beta2);
  const float eps = static_cast<float>(o.eps), wd = static_cast<float>(o.weight_decay);
  const BiasFactors bias = bias_factors(o.bias_correction, o.beta1, o.beta2, t);
  std::vector<float> update(p.size());
  for (std::size_t e = 0; e < p.size(); ++e) {
    m[e] = b1 * m[e] + one_minus_b1 * g[e];
    v[e] = b2 * v[e] + one_minus_b2 * (g[e] * g[e]);
    update[e] = m[e] * bias.momentum / (std::sqrt(v[e]) * bias.root + eps);
    if (wd > 0) update[e] += wd * p[e];
  }
  const double weight_norm = norm(p), update_norm = norm(update);
  TrustRatio ratio;
  if (weight_norm != 0 && update_norm != 0) {
    ratio.defined = true;
    ratio.value = static_cast<float>(clamp(weight_norm / update_norm, o.max_coeff, o.min_coeff));
  }
  const float step = static_cast<float>(o.lr * bias.rate * static_cast<double>(ratio.value));
  for (std::size_t e = 0; e < p.size(); ++e) p[e] -= step * update[e];
  return ratio;
}

void add(RunningCoefficient& running, TrustRatio ratio, double coeff_beta, CoefficientAverage how) {
  const bool contributes =
      how == CoefficientAverage::from_zero ? ratio.value != 1.0f : ratio.defined;
  if (!contributes) return;
  const float beta = static_cast<float>(coeff_beta);
  const float rest = static_cast<float>(1 - coeff_beta);
  running.average = beta * running.average + rest * ratio.value;
  running.weight = beta * running.weight + rest;
}

float frozen_coefficient(const RunningCoefficient& running, CoefficientAverage how) {
  if (how == CoefficientAverage::from_zero) return running.average;
  return running.weight > 0 ? running.average / running.weight : 1.0f;
}

std::vector<float> scaling_coefficients(std::span<const float> m, const TensorLayout& tensors,
                                        const Quirks& quirks) {
  std::vector<double> magnitude;
  double sum = 0;
  std::size_t moving = 0;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const double size = static_cast<double>(tensors.size(t));
    const double r = size == 0 ? 0 : norm(tensors.view(m, t)) / std::sqrt(size);
    if (size == 0 && quirks.empty_tensor_poisons) {
      throw Error(Exit::failure, fmt::format("tensor {} has no elements: scaling coefficients are "
                                             "NaN and there is no largest factor",
                                             t));
    }
    if (r == 0 && size > 0 && quirks.zero_momentum_fails) {
      throw Error(Exit::failure, fmt::format("the momentum of tensor {} is zero at the freeze, its "
                                             "scaling coefficient divides by zero",
                                             t));
    }
    magnitude.push_back(r);
    sum += r;
    moving += r != 0;
  }
  const double mean = moving == 0 ? 0 : sum / static_cast<double>(moving);
  std::vector<float> scaling;
  for (const double r : magnitude) scaling.push_back(r == 0 ? 1.0f : static_cast<float>(mean / r));
  return scaling;
}

float clamp_factor(double raw_factor, double momentum_share, float last_factor,
                   const OnebitLambOptions& o) {
  double factor = raw_factor;
  if (o.lamb.weight_decay > 0) {
    const double q = momentum_share > 1 ? 1 : momentum_share;
    factor = factor * q + (1 - q);
  }
  factor = clamp(factor, o.factor_max, o.factor_min);
  factor =
      clamp(factor, last_factor * (1 + o.factor_threshold), last_factor * (1 - o.factor_threshold));
  return static_cast<float>(factor);
}

float onebit_lamb_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                       std::span<float> fresh_v, std::span<const float> decoded,
                       std::span<const float> mask, float scaling, float coefficient,
                       float& last_factor, const OnebitLambOptions& o, Unseen unseen) {
  LAMBCAST_CHECK(p.size() == decoded.size() && p.size() == fresh_v.size() &&
                     (mask.empty() || mask.size() == p.size()),
                 "{}, {}, {} and {} elements", p.size(), decoded.size(), fresh_v.size(),
                 mask.size());
  const float b1 = static_cast<float>(o.lamb.beta1);
  const float one_minus_b1 = static_cast<float>(1 - o.lamb.beta1);
  const float b2 = static_cast<float>(o.lamb.beta2);
  const float one_minus_b2 = static_cast<float>(1 - o.lamb.beta2);
  const float eps = static_cast<float>(o.lamb.eps);
  const float wd = static_cast<float>(o.lamb.weight_decay);
  float factor = 0;
  double pre_sum = 0, update_sum = 0;
  std::vector<float> update(p.size());
  for (std::size_t e = 0; e < p.size(); ++e) {
    const float last = m[e];
    m[e] = decoded[e] / scaling;
    if (!mask.empty()) m[e] *= mask[e];
    if (unseen == Unseen::stay && v[e] == 0) m[e] = 0;
    const float g = (m[e] - b1 * last) / one_minus_b1;
    fresh_v[e] = b2 * fresh_v[e] + one_minus_b2 * (g * g);
    const float denominator = std::sqrt(v[e]) + eps;
    const float pre = m[e] / denominator;
    update[e] = wd > 0 ? pre + wd * p[e] : pre;
    const float ratio = denominator / (std::sqrt(fresh_v[e]) + eps);
    if (!std::isnan(factor) && !(ratio <= factor)) factor = ratio;  // a NaN stays
    pre_sum += static_cast<double>(pre) * pre;
    update_sum += static_cast<double>(update[e]) * update[e];
  }
  const double share = update_sum > 0 ? std::sqrt(pre_sum) / std::sqrt(update_sum) : 1;
  last_factor = clamp_factor(factor, share, last_factor, o);
  const float step = static_cast<float>(o.lamb.lr * static_cast<double>(coefficient * last_factor));
  for (std::size_t e = 0; e < p.size(); ++e) p[e] -= step * update[e];
  return last_factor;
}

}  // namespace lambcast::reference
