// LARS, LAMB, Adafactor, CAME and GaLore on whole tensors, compared with the formulas of their
// papers.
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "kernels/reference/came.h"
#include "kernels/reference/factored.h"
#include "kernels/reference/galore.h"
#include "kernels/reference/lamb.h"
#include "kernels/reference/lars.h"
#include "kernels/reference/sharded_lamb.h"

using namespace lambcast;
using namespace lambcast::reference;
using Values = std::vector<float>;

namespace {

Values random_values(std::size_t count, unsigned seed) {
  std::mt19937 bits(seed);
  Values values(count);
  for (float& x : values) x = static_cast<float>(bits() * 0x1p-32 - 0.5);
  return values;
}

template <typename Rule>
void step(const Rule& rule, typename Rule::State& state, const Part& part, Values& p,
          const Values& g, int k) {
  for (int round = 0; round < rule.rounds(k); ++round) {
    const Sums sums = rule.sums(round, {part, p, g}, state, k);
    rule.take(round, {part, p, g}, state, sums, k);
  }
  rule.apply({part, p, g}, state, k);
}

double rms(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares / double(x.size()));
}

}  // namespace

TEST_CASE("LARS by hand") {
  // |p| = 5, |g| = 10, trust 0.1, wd 0.5: ratio 0.5 / 12.5 = 0.04; with lr 2: v = 0.08 (g + 0.5 p).
  const Lars lars{{.lr = 2, .momentum = 0.5, .weight_decay = 0.5, .trust_coefficient = 0.1}};
  const Part part = whole_part({1, 2});
  Lars::State state = lars.state(part);
  Values p{3, 4};
  step(lars, state, part, p, {6, -8}, 1);
  CHECK(p[0] == Approx(3 - 0.08 * 7.5));
  CHECK(p[1] == Approx(4 + 0.08 * 6));
  // With zero weights the ratio is 1, and the velocity decays by half.
  p = {0, 0};
  step(lars, state, part, p, {1, 0}, 2);
  CHECK(p[0] == Approx(-(0.5 * 0.08 * 7.5 + 2)));
}

TEST_CASE("LAMB in rounds equals LAMB") {
  for (const auto how :
       {BiasCorrection::none, BiasCorrection::in_moments, BiasCorrection::in_rate}) {
    const LambOptions options{.lr = 0.1, .weight_decay = 0.01, .bias_correction = how};
    const ShardedLamb rule{options};
    const Part part = whole_part({5, 9});
    ShardedLamb::State state = rule.state(part);
    Values p = random_values(45, 1), q = p, m(45), v(45);
    for (int k = 1; k <= 5; ++k) {
      const Values g = random_values(45, 1 + unsigned(k));
      step(rule, state, part, p, g, k);
      lamb_step(q, m, v, g, options, k);
      CHECK(p == q);
    }
  }
}

TEST_CASE("Adafactor and CAME equal their papers' formulas on a matrix and a vector") {
  const std::size_t rows = 4, columns = 3, n = rows * columns;
  const Part part = whole_part({rows, columns}), vector = whole_part({1, n});
  const Adafactor adafactor{{.weight_decay = 0.1}};
  const Came came{{.lr = 0.01, .weight_decay = 0.1}};
  auto a = adafactor.state(part), av = adafactor.state(vector);
  auto c = came.state(part);
  Values p = random_values(n, 1), pv = p, pc = p;
  std::vector<double> r(rows), s(columns), v(n), want(p.begin(), p.end()), want_v = want;
  std::vector<double> cr(rows), cs(columns), rr(rows), rs(columns), m(n), want_c = want;
  const auto mean_into = [&](std::vector<double>& row, std::vector<double>& column, double b,
                             const std::vector<double>& x) {
    for (double& value : row) value *= b;
    for (double& value : column) value *= b;
    for (std::size_t e = 0; e < n; ++e) {
      row[e / columns] += (1 - b) * x[e] / double(columns);
      column[e % columns] += (1 - b) * x[e] / double(rows);
    }
  };
  const auto root = [&](const std::vector<double>& row, const std::vector<double>& column,
                        std::size_t e) {
    double mean = 0;
    for (const double value : row) mean += value / double(rows);
    return std::sqrt(row[e / columns] / mean * column[e % columns]);
  };
  for (int k = 1; k <= 6; ++k) {
    const Values g = random_values(n, unsigned(k) + 5);
    std::vector<double> squares(n), u(n), uv(n), uc(n);
    for (std::size_t e = 0; e < n; ++e) squares[e] = double(g[e]) * g[e] + 1e-30;
    const double b = 1 - std::pow(k, -0.8);
    mean_into(r, s, b, squares);
    mean_into(cr, cs, 0.999, squares);
    for (std::size_t e = 0; e < n; ++e) {
      v[e] = b * v[e] + (1 - b) * squares[e];
      u[e] = g[e] / root(r, s, e);
      uv[e] = g[e] / std::sqrt(v[e]);
      uc[e] = g[e] / root(cr, cs, e);
    }
    const auto moved = [&](std::vector<double>& weights, const std::vector<double>& update) {
      const double rate = std::min(1e-2, 1 / std::sqrt(k)) * std::max(1e-3, rms(weights));
      const double clip = std::max(1.0, rms(update));
      for (std::size_t e = 0; e < n; ++e)
        weights[e] -= rate * (0.1 * weights[e] + update[e] / clip);
    };
    moved(want, u);
    moved(want_v, uv);
    const double clip = std::max(1.0, rms(uc));
    std::vector<double> off(n);
    for (std::size_t e = 0; e < n; ++e) {
      m[e] = 0.9 * m[e] + 0.1 * uc[e] / clip;
      off[e] = (uc[e] / clip - m[e]) * (uc[e] / clip - m[e]) + 1e-16;
    }
    mean_into(rr, rs, 0.9999, off);
    for (std::size_t e = 0; e < n; ++e) {
      want_c[e] -= 0.01 * (0.1 * want_c[e] + m[e] / root(rr, rs, e));
    }
    step(adafactor, a, part, p, g, k);
    step(adafactor, av, vector, pv, g, k);
    step(came, c, part, pc, g, k);
    for (std::size_t e = 0; e < n; ++e) {
      REQUIRE(p[e] == Approx(want[e]).epsilon(1e-5).margin(1e-6));
      REQUIRE(pv[e] == Approx(want_v[e]).epsilon(1e-5).margin(1e-6));
      REQUIRE(pc[e] == Approx(want_c[e]).epsilon(1e-4).margin(1e-5));
    }
  }
}

TEST_CASE("CAME on a vector keeps a second moment of its own") {
  // v = (1 - beta2) g^2 and u = g / sqrt(v) = +-1 / sqrt(0.001), whose rms is clipped to 1; m = (1
  // - beta1) u, without a division.
  const Came came{{.lr = 0.5, .eps1 = 0, .beta1 = 0.75, .beta2 = 0.999, .weight_decay = 0}};
  const Part part = whole_part({1, 2});
  Came::State state = came.state(part);
  Values p{1, 1};
  step(came, state, part, p, {3, -0.5f}, 1);
  CHECK(p[0] == Approx(1 - 0.5 * 0.25));
  CHECK(p[1] == Approx(1 + 0.5 * 0.25));
  CHECK(state.v[0] == Approx(0.001 * 9));
  CHECK(state.v[1] == Approx(0.001 * 0.25));
}

TEST_CASE("a factored moment is the means of rows and of columns") {
  FactoredMoment moment({2, 4});
  const Part part = whole_part({2, 4});
  Sums sums = factored_sums(part);
  for (std::size_t k = 0; k < 8; ++k) add_factored(sums, part, k, double(k));
  moment.update(sums, 0.5);
  CHECK(moment.row == Values{0.5f * 1.5f, 0.5f * 5.5f});
  CHECK(moment.column == Values{0.5f * 2, 0.5f * 3, 0.5f * 4, 0.5f * 5});
  CHECK(moment.row_mean == Approx(0.5 * 3.5));
  moment.update(Sums(6), 0.5, 3);
  CHECK(moment.row == Values{0.25f * 1.5f, 0.25f * 5.5f});
  CHECK(moment.column[3] == 3 * 0.25f * 5);
  CHECK(moment.inverse_root(1, 3) == Approx(1 / std::sqrt(5.5 / 3.5 * 3 * 0.25 * 5)));
}

TEST_CASE("columns kept local are scaled by the number of the rank's own rows in each") {
  // The rank has row 2 of 4 x 3 and the first element of row 3: two elements of column 0, and one
  // of each other column.
  const MatrixShape whole{4, 3};
  const Sums own{0, 0, 0, 0, 6, 5, 7};
  Sums total{1, 2, 3, 4, 100, 100, 100};
  keep_columns_local(total, own, Part{whole, 2, 0, 3, 0, 4});
  CHECK(total == Sums{1, 2, 3, 4, 12, 20, 28});
  // A column without elements on the rank keeps the sum over all ranks.
  total = {1, 2, 3, 4, 100, 100, 100};
  keep_columns_local(total, Sums{0, 0, 0, 0, 6, 5, 0}, Part{whole, 2, 0, 3, 0, 2});
  CHECK(total == Sums{1, 2, 3, 4, 24, 20, 100});
}

TEST_CASE("Adafactor's rates, and Colossal-AI's variants") {
  Adafactor o;
  CHECK(o.rate(0.5, 100) == Approx(1e-2 * 0.5));
  CHECK(o.rate(0.5, 40000) == Approx(0.5 / 200));
  CHECK(o.rate(0, 1) == Approx(1e-2 * 1e-3));
  o.options.warmup_init = true;
  CHECK(o.rate(0.5, 100) == Approx(1e-4 * 0.5));
  o.options = {.lr = 3, .scale_parameter = false, .relative_step = false};
  CHECK(o.rate(0.5, 100) == 3);
  o.options = {.lr = 3, .relative_step = false, .lr_ignored = true, .rms_stays_zero = true};
  CHECK(o.rate(0.5, 100) == Approx(1e-5));
}

TEST_CASE("a basis of singular directions: orthonormal, with the largest directions first") {
  const MatrixShape shape{12, 7};
  const Values g = random_values(84, 1);
  const Values basis = galore_basis(g, shape, 7);
  REQUIRE(basis.size() == 49);
  double last = 1e9;
  for (std::size_t d = 0; d < 7; ++d) {
    double squares = 0;
    for (std::size_t i = 0; i < 12; ++i) {
      double along = 0;
      for (std::size_t j = 0; j < 7; ++j) along += double(g[i * 7 + j]) * basis[j * 7 + d];
      squares += along * along;
    }
    CHECK(squares < last);
    last = squares;
    for (std::size_t other = 0; other <= d; ++other) {
      double dot = 0;
      for (std::size_t j = 0; j < 7; ++j) dot += double(basis[j * 7 + d]) * basis[j * 7 + other];
      CHECK(dot == Approx(d == other).margin(1e-5));
    }
  }
  Values bad = g;
  bad[3] = NAN;
  CHECK(galore_basis(bad, shape, 2).empty());
}

TEST_CASE("GaLore on a gradient of its rank steps as Adam does in the small space") {
  // g = a b': one direction. R = +-|b| a. Adam's first step is sign(R), projected back on b / |b|.
  const Galore galore{{.lr = 0.1, .eps = 0, .weight_decay = 0, .rank = 1, .gap = 2, .scale = 0.5}};
  const Values a{1, -2, 3, -4}, b{0.6f, 0.8f};
  Values g(8), p(8);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 2; ++j) g[2 * i + j] = a[i] * b[j];
  }
  const Part part = whole_part({4, 2});
  Galore::State state = galore.state(part);
  step(galore, state, part, p, g, 1);
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t j = 0; j < 2; ++j) {
      CHECK(p[2 * i + j] == Approx(-0.05 * (a[i] > 0 ? 1 : -1) * b[j]).epsilon(1e-4));
    }
  }
  CHECK(galore.rounds(1) == 3);
  CHECK(galore.rounds(2) == 2);
  CHECK(galore.rounds(3) == 3);
  // A gradient that is not finite does not change the basis.
  const Values basis = state.basis;
  g[0] = NAN;
  step(galore, state, part, p, g, 3);
  CHECK(state.basis == basis);
}

TEST_CASE("the map of 8-bit states has 256 values, and every one converts back") {
  for (const Sign sign : {Sign::both, Sign::positive}) {
    const auto& map = dynamic_map(sign);
    for (std::size_t i = 0; i + 1 < 256; ++i) REQUIRE(map[i] < map[i + 1]);
    CHECK(map[255] == 1);
    CHECK(map[sign == Sign::both ? 127 : 0] == 0);
    EightBitState state;
    Values x(map.begin(), map.end()), back(256);
    store(x, state, sign);
    load(state, sign, back);
    CHECK(back == x);
    for (float& value : x) value *= 37;
    store(x, state, sign);
    load(state, sign, back);
    CHECK(back == x);
    CHECK(state.largest == Values{37});
  }
  // The largest step between adjacent values is 0.9 / 64 of the largest value in a block.
  EightBitState state;
  const Values x = random_values(1000, 4);
  Values back(1000);
  store(x, state, Sign::both);
  load(state, Sign::both, back);
  CHECK(state.largest.size() == 4);
  for (std::size_t e = 0; e < 1000; ++e) {
    REQUIRE(std::fabs(back[e] - x[e]) <= state.largest[e / 256] * 0.0142f);
  }
}

TEST_CASE("8-bit GaLore follows the one in fp32") {
  const Part part = whole_part({80, 64});
  GaloreOptions options{.lr = 0.01, .rank = 56, .gap = 5, .min_8bit_size = 4096};
  const Galore small{options};
  options.eight_bit = false;
  const Galore whole{options};
  auto a = small.state(part), b = whole.state(part);
  CHECK(a.m.empty());
  CHECK(a.m8.codes.size() == 80 * 56);
  Values p(80 * 64), q(80 * 64);
  const Values target = random_values(80 * 64, 1);
  double difference = 0, norm = 0;
  for (int k = 1; k <= 12; ++k) {
    const auto gradient = [&](Values w) {
      for (std::size_t e = 0; e < w.size(); ++e) w[e] -= target[e];
      return w;
    };
    step(small, a, part, p, gradient(p), k);
    step(whole, b, part, q, gradient(q), k);
  }
  for (std::size_t e = 0; e < p.size(); ++e) {
    difference += (double(p[e]) - q[e]) * (double(p[e]) - q[e]);
    norm += double(q[e]) * q[e];
  }
  CHECK(std::sqrt(difference / norm) < 0.2);  // 0.10: small variances are rounded to zero
  CHECK(p != q);
}

TEST_CASE("percentile clipping clips a norm above the 90th percentile of the last hundred") {
  PercentileClipping clipping{.percentile = 90};
  for (int k = 1; k <= 100; ++k) clip(clipping, k, k);  // 1 to 100
  // The ninety-first of the sorted norms, with 1 replaced by 500: 92.
  CHECK(clip(clipping, 500, 101) == Approx(92.0 / 500));
  CHECK(clip(clipping, 50, 102) == 1);
  PercentileClipping off;
  CHECK(clip(off, 1e9, 1) == 1);
}
