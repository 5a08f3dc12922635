#include "kernels/reference/muon.h"

#include <Eigen/QR>
#include <Eigen/SVD>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>

#include "kernels/reference/adam.h"

using namespace lambcast;
using namespace lambcast::reference;

namespace {

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

Eigen::MatrixXd drawn(Eigen::Index rows, Eigen::Index columns, unsigned seed) {
  std::mt19937 bits(seed);
  return Eigen::MatrixXd::NullaryExpr(rows, columns, [&] { return bits() * 0x1p-32 - 0.5; });
}

// Returns a matrix with these singular values in random directions.
Eigen::MatrixXd with_singular_values(Eigen::Index rows, Eigen::Index columns,
                                     const Eigen::VectorXd& values) {
  const Eigen::MatrixXd left =
      Eigen::HouseholderQR<Eigen::MatrixXd>(drawn(rows, rows, 1)).householderQ() *
      Eigen::MatrixXd::Identity(rows, values.size());
  const Eigen::MatrixXd right =
      Eigen::HouseholderQR<Eigen::MatrixXd>(drawn(columns, columns, 2)).householderQ() *
      Eigen::MatrixXd::Identity(columns, values.size());
  return left * values.asDiagonal() * right.transpose();
}

std::vector<float> flat(const Eigen::MatrixXd& x) {
  const RowMajor rows = x.cast<float>();
  return {rows.data(), rows.data() + rows.size()};
}

MatrixShape shape_of(const Eigen::MatrixXd& x) {
  return {static_cast<std::size_t>(x.rows()), static_cast<std::size_t>(x.cols())};
}

Eigen::MatrixXd orthogonalised_matrix(const Eigen::MatrixXd& x, const NewtonSchulz& options) {
  const std::vector<float> values = orthogonalised(flat(x), shape_of(x), options);
  return Eigen::Map<const RowMajor>(values.data(), x.rows(), x.cols()).cast<double>();
}

}  // namespace

TEST_CASE("muon: singular values are mapped by the polynomial, and their directions stay") {
  const Eigen::VectorXd values = Eigen::VectorXd::LinSpaced(12, 0.05, 1);
  for (const auto& [rows, columns] : {std::pair{12, 40}, {40, 12}, {12, 12}}) {
    const Eigen::MatrixXd x = with_singular_values(rows, columns, values);
    Eigen::VectorXd mapped = values / values.norm();
    for (int i = 0; i < 5; ++i)
      for (double& s : mapped) s = 3.4445 * s - 4.7750 * std::pow(s, 3) + 2.0315 * std::pow(s, 5);
    CHECK(
        (orthogonalised_matrix(x, {.in_bf16 = false}) - with_singular_values(rows, columns, mapped))
            .norm() < 1e-4);
  }
}

TEST_CASE("muon: singular values of 0.01 to 1 end in 0.68 to 1.14, in bf16 within its digits") {
  const Eigen::VectorXd values = Eigen::VectorXd::LinSpaced(32, 0.06, 1);
  const Eigen::MatrixXd x = with_singular_values(32, 96, values);
  REQUIRE(values(0) / values.norm() > 0.01);
  for (const bool in_bf16 : {false, true}) {
    const Eigen::VectorXd found =
        Eigen::JacobiSVD<Eigen::MatrixXd>(orthogonalised_matrix(x, {.in_bf16 = in_bf16}))
            .singularValues();
    const double margin = in_bf16 ? 0.05 : 1e-3;
    CHECK(found.minCoeff() > 0.68 - margin);
    CHECK(found.maxCoeff() < 1.14 + margin);
  }
}

TEST_CASE("muon: an orthogonal matrix is kept up to a factor, and its size does not matter") {
  const Eigen::MatrixXd q = with_singular_values(16, 16, Eigen::VectorXd::Ones(16));
  const Eigen::MatrixXd found = orthogonalised_matrix(q, {.in_bf16 = false});
  const double factor = found.cwiseProduct(q).sum() / 16;
  CHECK(factor > 0.68);
  CHECK(factor < 1.14);
  CHECK((found - factor * q).norm() < 1e-4);
  CHECK((orthogonalised_matrix(1024 * q, {.in_bf16 = false}) - found).norm() < 1e-5);
  CHECK(orthogonalised_matrix(0 * q, {}).norm() == 0);
}

TEST_CASE("muon: products take 4 n^2 m + 2 n^3 FLOPs an iteration") {
  for (const MatrixShape shape : {MatrixShape{6, 20}, {20, 6}, {8, 8}}) {
    double flops = 0;
    orthogonalised(std::vector<float>(shape.elements(), 1.0F), shape, {}, &flops);
    const auto n = static_cast<double>(std::min(shape.rows, shape.columns));
    const auto m = static_cast<double>(std::max(shape.rows, shape.columns));
    CHECK(flops == 5 * (4 * n * n * m + 2 * n * n * n));
  }
}

TEST_CASE("muon: the factors on updates are those of the programs") {
  CHECK(muon_scale(MuonScale::shape, {4096, 1024}) == 2);
  CHECK(muon_scale(MuonScale::shape, {1024, 4096}) == 1);
  CHECK(muon_scale(MuonScale::spectral, {1024, 4096}) == 64);
  CHECK(muon_scale(MuonScale::match_adamw, {4096, 1024}) == Approx(12.8));
  CHECK(muon_scale(MuonScale::unit_rms, {1024, 4096}) == 0.5);
}

TEST_CASE("muon: momentum, Nesterov, decay and scale of a step by hand") {
  const MatrixShape shape{8, 2};
  const Part part = whole_part(shape);
  const std::vector<float> first = flat(drawn(8, 2, 3)), second = flat(drawn(8, 2, 4));
  for (const bool nesterov : {true, false}) {
    const Muon muon{{.lr = 0.1, .momentum = 0.9, .weight_decay = 0.5, .nesterov = nesterov}};
    Muon::State state = muon.state(part);
    std::vector<float> p = flat(drawn(8, 2, 5)), expected = p, direction(16), m(16);
    int step = 1;
    for (const std::vector<float>& g : {first, second}) {
      for (std::size_t i = 0; i < 16; ++i) {
        m[i] = 0.9F * m[i] + 0.1F * g[i];
        direction[i] = nesterov ? 0.1F * g[i] + 0.9F * m[i] : m[i];
      }
      const std::vector<float> update = orthogonalised(direction, shape, {});
      for (std::size_t i = 0; i < 16; ++i) expected[i] = 0.95F * expected[i] - 0.1F * 2 * update[i];
      const View view{part, p, g};
      muon.take(0, view, state, muon.sums(0, view, state, step), step);
      muon.apply(view, state, step++);
    }
    for (std::size_t i = 0; i < 16; ++i) CHECK(p[i] == Approx(expected[i]).epsilon(1e-4));
  }
}

TEST_CASE("muon: vectors run AdamW") {
  const Part part = whole_part({1, 5});
  const Muon muon{{.vectors = {.lr = 0.01, .weight_decay = 0.1, .bias_correction = true}}};
  Muon::State state = muon.state(part);
  std::vector<float> p{1, 2, 3, 4, 5}, expected = p, m(5), v(5);
  const std::vector<float> g{0.5F, -1, 0, 2, 1};
  for (int step = 1; step <= 3; ++step) {
    const View view{part, p, g};
    CHECK(muon.sums(0, view, state, step).empty());
    muon.apply(view, state, step);
    adam_step(expected, m, v, g, muon.options.vectors, step);
  }
  CHECK(p == expected);
}
