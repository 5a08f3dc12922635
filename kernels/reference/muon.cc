#include "kernels/reference/muon.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "kernels/reference/adam.h"
#include "kernels/reference/half.h"
#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

using MuonMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

bool is_muon_matrix(const Part& part) { return part.whole.rows > 1 && part.whole.columns > 1; }

std::size_t whole_place(const Part& part, std::size_t k) {
  return part.row(k) * part.whole.columns + part.column(k);
}

// Products of the iterations, rounded as they are stored.
class Products {
 public:
  explicit Products(bool in_bf16) : in_bf16_(in_bf16) {}

  MuonMatrix rounded(MuonMatrix x) const {
    if (in_bf16_)
      x = x.unaryExpr([](float value) {
        return from_half(to_half(value, HalfFormat::bf16), HalfFormat::bf16);
      });
    return x;
  }

  // Returns scale x y + add_scale add.
  template <typename Y>
  MuonMatrix times(const MuonMatrix& x, const Y& y, double scale, const MuonMatrix& add,
                   double add_scale) {
    flops += 2.0 * static_cast<double>(x.rows()) * static_cast<double>(x.cols()) *
             static_cast<double>(y.cols());
    MuonMatrix product = static_cast<float>(scale) * (x * y);
    if (add_scale != 0) product += static_cast<float>(add_scale) * add;
    return rounded(std::move(product));
  }

  double flops = 0;

 private:
  bool in_bf16_;
};

}  // namespace

double muon_scale(MuonScale scale, MatrixShape shape) {
  const auto rows = static_cast<double>(shape.rows), columns = static_cast<double>(shape.columns);
  switch (scale) {
    case MuonScale::shape:
      return std::sqrt(std::max(1.0, rows / columns));
    case MuonScale::spectral:
      return std::sqrt(std::max(rows, columns));
    case MuonScale::match_adamw:
      return 0.2 * std::sqrt(std::max(rows, columns));
    case MuonScale::unit_rms:
      return std::sqrt(rows / columns);
  }
  return 1;
}

std::vector<float> orthogonalised(std::span<const float> values, MatrixShape shape,
                                  const NewtonSchulz& options, double* flops) {
  LAMBCAST_CHECK(values.size() == shape.elements(), "{} values of {} x {}", values.size(),
                 shape.rows, shape.columns);
  const Eigen::Map<const MuonMatrix> given(values.data(), static_cast<Eigen::Index>(shape.rows),
                                           static_cast<Eigen::Index>(shape.columns));
  Products products(options.in_bf16);
  const bool tall = shape.rows > shape.columns;
  MuonMatrix x = products.rounded(tall ? MuonMatrix(given.transpose()) : MuonMatrix(given));
  const float norm = std::max(x.norm(), static_cast<float>(options.eps));
  x = products.rounded(x / norm);
  for (int i = 0; i < options.iterations; ++i) {
    const MuonMatrix gram = products.times(x, x.transpose(), 1, x, 0);
    const MuonMatrix factor = products.times(gram, gram, options.c, gram, options.b);
    x = products.times(factor, x, 1, x, options.a);
  }
  if (flops != nullptr) *flops += products.flops;
  if (tall) x = MuonMatrix(x.transpose());
  return {x.data(), x.data() + x.size()};
}

Muon::State Muon::state(const Part& part) const {
  const std::vector<float> zeros(part.size());
  return {zeros, is_muon_matrix(part) ? std::vector<float>{} : zeros, {}};
}

Sums Muon::sums(int, const View& x, State& state, int) const {
  if (!is_muon_matrix(x.part)) return {};
  const auto old = static_cast<float>(options.momentum);
  const auto fresh = static_cast<float>(1 - options.momentum);
  Sums whole(x.part.whole.elements());
  for (std::size_t k = 0; k < x.g.size(); ++k) {
    state.m[k] = old * state.m[k] + fresh * x.g[k];
    whole[whole_place(x.part, k)] +=
        options.nesterov ? fresh * x.g[k] + old * state.m[k] : state.m[k];
  }
  return whole;
}

void Muon::take(int, const View& x, State& state, const Sums& total, int) const {
  if (!is_muon_matrix(x.part)) return;
  const std::vector<float> direction(total.begin(), total.end());
  state.update = orthogonalised(direction, x.part.whole, options.iterations);
}

void Muon::apply(const View& x, State& state, int step) const {
  if (!is_muon_matrix(x.part)) {
    adam_step(x.p, state.m, state.v, x.g, options.vectors, step);
    return;
  }
  const auto rate = static_cast<float>(options.lr * muon_scale(options.scale, x.part.whole));
  const auto kept = static_cast<float>(1 - options.lr * options.weight_decay);
  for (std::size_t k = 0; k < x.p.size(); ++k)
    x.p[k] = kept * x.p[k] - rate * state.update[whole_place(x.part, k)];
}

}  // namespace lambcast::reference
