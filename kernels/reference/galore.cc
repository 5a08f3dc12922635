#include "kernels/reference/galore.h"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>

namespace lambcast::reference {
namespace {

bool right_sided(MatrixShape shape) { return shape.rows >= shape.columns; }

// Returns the index in the whole tensor of element k of a part.
std::size_t place_of(const Part& part, std::size_t k) {
  return part.row(k) * part.whole.columns + part.column(k);
}

Sums gathered(const View& x) {
  Sums whole(x.part.whole.elements());
  for (std::size_t k = 0; k < x.g.size(); ++k) {
    whole[place_of(x.part, k)] += static_cast<double>(x.g[k]);
  }
  return whole;
}

}  // namespace

std::vector<float> galore_basis(std::span<const float> gradient, MatrixShape shape, int rank) {
  using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Eigen::Map<const Matrix> g(gradient.data(), static_cast<Eigen::Index>(shape.rows),
                                   static_cast<Eigen::Index>(shape.columns));
  if (!g.allFinite()) return {};
  const Eigen::MatrixXd exact = g.cast<double>();
  Eigen::MatrixXd gram;
  if (right_sided(shape))
    gram = exact.transpose() * exact;
  else
    gram = exact * exact.transpose();
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(gram);
  if (solver.info() != Eigen::Success) return {};
  // Eigenvalues increase, so the order is reversed to put the largest directions first.
  Eigen::MatrixXd directions = solver.eigenvectors().rightCols(rank).rowwise().reverse();
  for (Eigen::Index d = 0; d < rank; ++d) {
    Eigen::Index largest = 0;
    directions.col(d).cwiseAbs().maxCoeff(&largest);
    if (directions(largest, d) < 0) directions.col(d) *= -1;
  }
  const Matrix basis = directions.cast<float>();
  return {basis.data(), basis.data() + basis.size()};
}

bool Galore::projects(const Part& part) const {
  return std::min(part.whole.rows, part.whole.columns) > static_cast<std::size_t>(options.rank);
}

MatrixShape Galore::low_shape(const Part& part) const {
  const std::size_t rank = static_cast<std::size_t>(options.rank);
  return right_sided(part.whole) ? MatrixShape{part.whole.rows, rank}
                                 : MatrixShape{rank, part.whole.columns};
}

// The size of the whole state decides, so that all shardings store it in the same way.
bool Galore::in_8_bits(const Part& part) const {
  const MatrixShape state = projects(part) ? low_shape(part) : part.whole;
  return options.eight_bit && state.elements() >= options.min_8bit_size;
}

Galore::State Galore::state(const Part& part) const {
  State s;
  s.clipping.percentile = options.percentile_clipping;
  const bool eight = in_8_bits(part);
  const std::size_t size = projects(part) ? low_shape(part).elements()
                           : eight        ? part.whole.elements()
                                          : part.size();
  const std::vector<float> zero(size);
  s.low = zero;
  if (eight) {
    store(zero, s.m8, Sign::both);
    store(zero, s.v8, Sign::positive);
  } else {
    s.m = s.v = zero;
  }
  return s;
}

// Returns the sums of a round. If the basis is refreshed, the first round sums the whole gradient.
// The next round sums the projection (or again the whole gradient if the state is undivided), and
// the last round the square of the norm.
Sums Galore::sums(int round, const View& x, State& s, int step) const {
  const Part& part = x.part;
  if (refreshes(step) && round == 0) return projects(part) ? gathered(x) : Sums{};
  const bool norm_only = round == rounds(step) - 1;
  if (!norm_only && !projects(part) && in_8_bits(part)) return gathered(x);
  if (norm_only || !projects(part)) {
    Sums square(1);
    const std::span<const float> g = x.g;
    for (const float value : g) square[0] += norm_only ? static_cast<double>(value) * value : 0;
    return square;
  }
  const MatrixShape low = low_shape(part);
  const std::size_t rank = static_cast<std::size_t>(options.rank);
  Sums projected(low.elements());
  for (std::size_t k = 0; k < x.g.size(); ++k) {
    const std::size_t i = part.row(k), j = part.column(k);
    const bool right = right_sided(part.whole);
    for (std::size_t d = 0; d < rank; ++d) {
      const double along = static_cast<double>(x.g[k]) * s.basis[(right ? j : i) * rank + d];
      projected[right ? i * rank + d : d * low.columns + j] += along;
    }
  }
  return projected;
}

void Galore::take(int round, const View& x, State& s, const Sums& total, int step) const {
  if (refreshes(step) && round == 0) {
    if (!projects(x.part)) return;
    const std::vector<float> gradient(total.begin(), total.end());
    auto basis = galore_basis(gradient, x.part.whole, options.rank);
    if (!basis.empty()) s.basis = std::move(basis);
    return;
  }
  if (round < rounds(step) - 1) {
    if (projects(x.part) || in_8_bits(x.part))
      std::copy(total.begin(), total.end(), s.low.begin());
    else
      std::copy(x.g.begin(), x.g.end(), s.low.begin());
    return;
  }
  // Makes an Adam step on `low`, which becomes the update.
  const float clipped = static_cast<float>(clip(s.clipping, std::sqrt(total[0]), step));
  const bool eight = in_8_bits(x.part);
  std::vector<float> m = s.m, v = s.v;
  if (eight) {
    m.resize(s.low.size());
    v.resize(s.low.size());
    load(s.m8, Sign::both, m);
    load(s.v8, Sign::positive, v);
  }
  const float b1 = static_cast<float>(options.beta1), rest1 = static_cast<float>(1 - options.beta1);
  const float b2 = static_cast<float>(options.beta2), rest2 = static_cast<float>(1 - options.beta2);
  const double root = std::sqrt(1 - std::pow(options.beta2, step));
  const float rate = static_cast<float>(root / (1 - std::pow(options.beta1, step)));
  const float eps = static_cast<float>(options.eps * root);
  for (std::size_t k = 0; k < s.low.size(); ++k) {
    const float g = s.low[k] * clipped;
    m[k] = b1 * m[k] + rest1 * g;
    v[k] = b2 * v[k] + rest2 * (g * g);
    s.low[k] = rate * m[k] / (std::sqrt(v[k]) + eps);
  }
  if (eight) {
    store(m, s.m8, Sign::both);
    store(v, s.v8, Sign::positive);
  } else {
    s.m = std::move(m);
    s.v = std::move(v);
  }
}

void Galore::apply(const View& x, State& s, int) const {
  const Part& part = x.part;
  const float lr = static_cast<float>(options.lr);
  const float back = static_cast<float>(options.lr * options.scale);
  const float decay = static_cast<float>(options.lr * options.weight_decay);
  const std::size_t rank = static_cast<std::size_t>(options.rank);
  const bool projected = projects(part), right = right_sided(part.whole), whole = in_8_bits(part);
  for (std::size_t k = 0; k < x.p.size(); ++k) {
    float move = projected ? 0 : lr * s.low[whole ? place_of(part, k) : k];
    if (projected) {
      const std::size_t i = part.row(k), j = part.column(k);
      for (std::size_t d = 0; d < rank; ++d) {
        const float low = s.low[right ? i * rank + d : d * part.whole.columns + j];
        move += low * s.basis[(right ? j : i) * rank + d];
      }
      move *= back;
    }
    x.p[k] -= move;
    x.p[k] -= decay * x.p[k];
  }
}

}  // namespace lambcast::reference
