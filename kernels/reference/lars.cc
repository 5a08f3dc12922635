#include "kernels/reference/lars.h"

#include <cmath>

namespace lambcast::reference {

Lars::State Lars::state(const Part& part) const { return {std::vector<float>(part.size()), 1}; }

Sums Lars::sums(int, const View& x, State&, int) const {
  Sums squares(2);
  for (std::size_t k = 0; k < x.p.size(); ++k) {
    squares[0] += static_cast<double>(x.p[k]) * x.p[k];
    squares[1] += static_cast<double>(x.g[k]) * x.g[k];
  }
  return squares;
}

void Lars::take(int, const View&, State& state, const Sums& total, int) const {
  const double p = std::sqrt(total[0]), g = std::sqrt(total[1]);
  const double below = g + options.weight_decay * p + options.eps;
  state.ratio = p == 0 || g == 0 ? 1 : options.trust_coefficient * p / below;
}

void Lars::apply(const View& x, State& state, int) const {
  const float rate = static_cast<float>(options.lr * state.ratio);
  const float momentum = static_cast<float>(options.momentum);
  const float wd = static_cast<float>(options.weight_decay);
  for (std::size_t k = 0; k < x.p.size(); ++k) {
    state.velocity[k] = momentum * state.velocity[k] + rate * (x.g[k] + wd * x.p[k]);
    x.p[k] -= state.velocity[k];
  }
}

}  // namespace lambcast::reference
