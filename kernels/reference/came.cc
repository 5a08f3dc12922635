#include "kernels/reference/came.h"

#include <algorithm>
#include <cmath>

namespace lambcast::reference {

Came::State Came::state(const Part& part) const {
  const MatrixShape factored = is_matrix(part) ? part.whole : MatrixShape{};
  const std::vector<float> zero(part.size());
  return {FactoredMoment(factored),
          FactoredMoment(factored),
          {},
          is_matrix(part) ? std::vector<float>() : zero,
          zero,
          zero};
}

Sums Came::sums(int round, const View& x, State& s, int) const {
  if (round == 1) {
    Sums squares(1);
    for (const float u : s.update) squares[0] += static_cast<double>(u) * u;
    return squares;
  }
  if (!is_matrix(x.part)) return {};
  Sums sums = factored_sums(x.part);
  for (std::size_t k = 0; k < x.g.size(); ++k) {
    const double off = round == 0 ? x.g[k] : s.update[k] - s.m[k];
    add_factored(sums, x.part, k, off * off + (round == 0 ? options.eps1 : options.eps2));
  }
  if (options.columns_stay_local) s.own = sums;
  return sums;
}

void Came::take(int round, const View& x, State& s, const Sums& total, int step) const {
  Sums used = total;
  if (options.columns_stay_local && round != 1 && is_matrix(x.part)) {
    keep_columns_local(used, s.own, x.part);
  }
  const double copies = options.columns_summed ? ranks_of(x.part) : 1;
  const float b1 = static_cast<float>(options.beta1),
              one_minus_b1 = static_cast<float>(1 - options.beta1);
  const float b2 = static_cast<float>(options.beta2),
              one_minus_b2 = static_cast<float>(1 - options.beta2);
  if (round == 0 && is_matrix(x.part)) {
    s.moment.update(used, options.beta2, copies);
    for (std::size_t k = 0; k < x.g.size(); ++k) {
      s.update[k] = x.g[k] * s.moment.inverse_root(x.part.row(k), x.part.column(k));
    }
  } else if (round == 0) {
    for (std::size_t k = 0; k < x.g.size(); ++k) {
      s.v[k] = b2 * s.v[k] + one_minus_b2 * (x.g[k] * x.g[k] + static_cast<float>(options.eps1));
      s.update[k] = x.g[k] / std::sqrt(s.v[k]);
    }
  } else if (round == 1) {
    s.update_rms = std::sqrt(total[0] / static_cast<double>(x.part.whole.elements()));
    const double clip = std::max(1.0, s.update_rms / options.clip_threshold);
    const float inverse = static_cast<float>(1 / clip);
    for (std::size_t k = 0; k < x.g.size(); ++k) {
      s.update[k] *= inverse;
      s.m[k] = b1 * s.m[k] + one_minus_b1 * s.update[k];
    }
  } else if (is_matrix(x.part)) {
    FactoredMoment& residual = options.residual_in_moment && step > 1 ? s.moment : s.residual;
    residual.update(used, options.beta3, copies);
    if (options.residual_in_moment) s.moment = s.residual = residual;
  }
}

void Came::apply(const View& x, State& s, int) const {
  const float lr = static_cast<float>(options.lr);
  const float decay = static_cast<float>(options.lr * options.weight_decay);
  for (std::size_t k = 0; k < x.p.size(); ++k) {
    float move = s.m[k];
    if (is_matrix(x.part)) move *= s.residual.inverse_root(x.part.row(k), x.part.column(k));
    x.p[k] -= decay * x.p[k];
    x.p[k] -= lr * move;
  }
}

}  // namespace lambcast::reference
