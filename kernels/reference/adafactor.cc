#include "kernels/reference/adafactor.h"

#include <algorithm>
#include <cmath>

namespace lambcast::reference {

double Adafactor::beta(int step) const { return 1 - std::pow(step, options.decay_rate); }

double Adafactor::rate(double weight_rms, int step) const {
  const bool relative = options.relative_step || options.lr_ignored;
  const double most = options.warmup_init ? 1e-6 * step : 1e-2;
  const double base =
      relative ? std::min(most, 1 / std::sqrt(static_cast<double>(step))) : options.lr;
  if (!options.scale_parameter) return base;
  return base * std::max(options.eps2, options.rms_stays_zero ? 0 : weight_rms);
}

Adafactor::State Adafactor::state(const Part& part) const {
  State s{FactoredMoment(is_matrix(part) ? part.whole : MatrixShape{}), {}, {}, {}, {}};
  if (!is_matrix(part)) s.v.resize(part.size());
  if (options.beta1 > 0) s.m.resize(part.size());
  s.update.resize(part.size());
  return s;
}

Sums Adafactor::sums(int round, const View& x, State& s, int) const {
  if (round == 0) {
    if (!is_matrix(x.part)) return {};
    Sums sums = factored_sums(x.part);
    for (std::size_t k = 0; k < x.g.size(); ++k) {
      add_factored(sums, x.part, k, static_cast<double>(x.g[k]) * x.g[k] + options.eps1);
    }
    if (options.columns_stay_local) s.own = sums;
    return sums;
  }
  Sums squares(2);
  for (std::size_t k = 0; k < x.g.size(); ++k) {
    squares[0] += static_cast<double>(s.update[k]) * s.update[k];
    squares[1] += static_cast<double>(x.p[k]) * x.p[k];
  }
  return squares;
}

void Adafactor::take(int round, const View& x, State& s, const Sums& total, int step) const {
  if (round == 1) {
    const double elements = static_cast<double>(x.part.whole.elements());
    s.update_rms = std::sqrt(total[0] / elements);
    s.weight_rms = std::sqrt(total[1] / elements);
    return;
  }
  if (is_matrix(x.part)) {
    Sums used = total;
    if (options.columns_stay_local) keep_columns_local(used, s.own, x.part);
    s.moment.update(used, beta(step), options.columns_summed ? ranks_of(x.part) : 1);
    for (std::size_t k = 0; k < x.g.size(); ++k) {
      s.update[k] = x.g[k] * s.moment.inverse_root(x.part.row(k), x.part.column(k));
    }
    return;
  }
  const float b = static_cast<float>(beta(step)), rest = static_cast<float>(1 - beta(step));
  for (std::size_t k = 0; k < x.g.size(); ++k) {
    s.v[k] = b * s.v[k] + rest * (x.g[k] * x.g[k] + static_cast<float>(options.eps1));
    s.update[k] = x.g[k] / std::sqrt(s.v[k]);
  }
}

void Adafactor::apply(const View& x, State& s, int step) const {
  const double lr = rate(s.weight_rms, step);
  const double clip = std::max(1.0, s.update_rms / options.clip_threshold);
  const float length = static_cast<float>(lr / clip);
  const float decay = static_cast<float>(lr * options.weight_decay);
  const float b1 = static_cast<float>(options.beta1), rest = static_cast<float>(1 - options.beta1);
  for (std::size_t k = 0; k < x.p.size(); ++k) {
    float move = length * s.update[k];
    if (options.beta1 > 0) move = s.m[k] = b1 * s.m[k] + rest * move;
    x.p[k] -= decay * x.p[k];
    x.p[k] -= move;
  }
}

}  // namespace lambcast::reference
