#include "kernels/reference/sharded_lamb.h"

#include <cmath>

#include "kernels/bias_correction.h"
#include "kernels/reference/half.h"

namespace lambcast::reference {

ShardedLamb::State ShardedLamb::state(const Part& part) const {
  const std::vector<float> zero(part.size());
  return {zero, zero, zero, 1};
}

Sums ShardedLamb::sums(int, const View& x, State& s, int step) const {
  const LambOptions& o = options;
  const float b1 = static_cast<float>(o.beta1), one_minus_b1 = static_cast<float>(1 - o.beta1);
  const float b2 = static_cast<float>(o.beta2), one_minus_b2 = static_cast<float>(1 - o.beta2);
  const float eps = static_cast<float>(o.eps), wd = static_cast<float>(o.weight_decay);
  const BiasFactors bias = bias_factors(o.bias_correction, o.beta1, o.beta2, step);
  Sums squares(2);
  for (std::size_t k = 0; k < x.p.size(); ++k) {
    s.m[k] = b1 * s.m[k] + one_minus_b1 * x.g[k];
    s.v[k] = b2 * s.v[k] + one_minus_b2 * (x.g[k] * x.g[k]);
    s.update[k] = s.m[k] * bias.momentum / (std::sqrt(s.v[k]) * bias.root + eps);
    if (wd > 0) s.update[k] += wd * x.p[k];
    const double p = norm_of_half_weights ? from_half(to_half(x.p[k])) : x.p[k];
    squares[0] += p * p;
    squares[1] += static_cast<double>(s.update[k]) * s.update[k];
  }
  return squares;
}

void ShardedLamb::take(int, const View&, State& s, const Sums& total, int) const {
  s.ratio = 1;
  if (total[0] == 0 || total[1] == 0) return;
  s.ratio = std::sqrt(total[0]) / std::sqrt(total[1]);
  if (s.ratio > options.max_coeff) s.ratio = options.max_coeff;
  if (s.ratio < options.min_coeff) s.ratio = options.min_coeff;
}

void ShardedLamb::apply(const View& x, State& s, int step) const {
  const double rate =
      bias_factors(options.bias_correction, options.beta1, options.beta2, step).rate;
  const double ratio = static_cast<double>(static_cast<float>(s.ratio));
  const float length = static_cast<float>(options.lr * rate * ratio);
  for (std::size_t k = 0; k < x.p.size(); ++k) x.p[k] -= length * s.update[k];
}

}  // namespace lambcast::reference
