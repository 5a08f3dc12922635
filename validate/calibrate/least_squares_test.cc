#include "validate/calibrate/least_squares.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast::validate {
namespace {

using Eigen::VectorXd;

VectorXd vector(std::initializer_list<double> values) {
  VectorXd v(static_cast<Eigen::Index>(values.size()));
  std::copy(values.begin(), values.end(), v.data());
  return v;
}

// Fits y = a + b t at t = 0, 1, 2, ...; the residuals are a + b t - y.
LeastSquares line(const std::vector<double>& y) {
  LeastSquares problem;
  problem.residuals = [y](const VectorXd& x) {
    VectorXd r(static_cast<Eigen::Index>(y.size()));
    for (Eigen::Index i = 0; i < r.size(); ++i)
      r[i] = x[0] + x[1] * static_cast<double>(i) - y[static_cast<std::size_t>(i)];
    return r;
  };
  problem.start = problem.first = vector({0, 0});
  problem.low = vector({-100, -100});
  problem.high = vector({100, 100});
  problem.prior_width = vector({1e6, 1e6});
  return problem;
}

TEST_CASE("least squares: an exact line is found from a distant start") {
  const LeastSquaresFit fit = minimise(line({1, 3, 5, 7, 9, 11}));
  CHECK(fit.x[0] == Approx(1).epsilon(1e-3));
  CHECK(fit.x[1] == Approx(2).epsilon(1e-3));
  CHECK(fit.standard_error.maxCoeff() < 1e-2);
}

// From x = 0.15 an undamped step on r = atan(20 x) is atan(3) (1 + 9) / 20 = 0.62 long and ends at
// -0.47, where the residual is larger. Only a step shorter than 0.3 reduces it.
TEST_CASE("least squares: a step that overshoots is shortened until it lowers the cost") {
  LeastSquares problem;
  problem.residuals = [](const VectorXd& x) { return vector({std::atan(20 * x[0])}); };
  problem.start = problem.first = vector({0.15});
  problem.low = vector({-5});
  problem.high = vector({5});
  problem.prior_width = vector({1e6});
  problem.outlier = 10;
  CHECK(minimise(problem).x[0] == Approx(0).margin(1e-3));
}

TEST_CASE("least squares: standard errors are the textbook's") {
  // Residuals are within the outlier limit, so the fit is ordinary least squares. For t = 0..3 and
  // y = 0, 1, 1, 2 the line is 0.1 + 0.6 t, with residuals 0.1, -0.3, 0.3, -0.1: variance 0.2 / 2,
  // sum (t - 1.5)^2 = 5. So the slope's error is sqrt(0.1 / 5) and the intercept's sqrt(0.1 (1/4 +
  // 2.25/5)).
  LeastSquares problem = line({0, 1, 1, 2});
  problem.outlier = 10;
  const LeastSquaresFit fit = minimise(problem);
  CHECK(fit.x[0] == Approx(0.1).margin(1e-3));
  CHECK(fit.x[1] == Approx(0.6).epsilon(1e-3));
  CHECK(fit.standard_error[1] == Approx(std::sqrt(0.1 / 5)).epsilon(1e-2));
  CHECK(fit.standard_error[0] == Approx(std::sqrt(0.1 * 0.7)).epsilon(1e-2));
  CHECK(fit.from_data.minCoeff() > 0.99);
}

TEST_CASE("least squares: an outlier pulls with bounded force") {
  // Ten points are on y = 1 and one is at 3; ordinary least squares would move the line by 0.18.
  LeastSquares problem = line({1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3});
  problem.high[1] = 1e-9;  // keeps the line horizontal
  problem.low[1] = -1e-9;
  // In equilibrium ten residuals of e balance one of d, so e = d / 10.
  CHECK(minimise(problem).x[0] == Approx(1 + problem.outlier / 10).epsilon(1e-3));
}

TEST_CASE("least squares: bounds hold, and parameters without effect stay") {
  LeastSquares bounded = line({1, 3, 5});
  bounded.high[1] = 1.5;
  CHECK(minimise(bounded).x[1] == Approx(1.5));
  LeastSquares blind;
  blind.residuals = [](const VectorXd& x) { return vector({x[0] - 1, x[0] - 1.01}); };
  blind.start = blind.first = vector({0, 0.3});
  blind.low = vector({-5, -5});
  blind.high = vector({5, 5});
  blind.prior_width = vector({100, 1});
  const LeastSquaresFit fit = minimise(blind);
  CHECK(fit.x[1] == Approx(0.3));
  CHECK(fit.from_data[1] < 1e-6);
  CHECK(fit.from_data[0] > 0.99);
}

TEST_CASE("least squares: residuals of the prior move the fit but do not count as data") {
  // Three rows at 1 and one row of the prior at 0: the fit is the mean, and the data determine
  // three quarters of it.
  LeastSquares problem;
  problem.residuals = [](const VectorXd& x) {
    return vector({x[0] - 1, x[0] - 1, x[0] - 1, x[0]});
  };
  problem.start = problem.first = vector({0});
  problem.low = vector({-5});
  problem.high = vector({5});
  problem.prior_width = vector({1e6});
  problem.outlier = 10;
  problem.of_prior = 1;
  const LeastSquaresFit fit = minimise(problem);
  CHECK(fit.x[0] == Approx(0.75).epsilon(1e-3));
  CHECK(fit.from_data[0] == Approx(0.75).epsilon(1e-3));
  CHECK(fit.residuals.size() == 3);
  // v = 3 / 16 over two degrees of freedom, A = 4.
  CHECK(fit.standard_error[0] == Approx(std::sqrt(3. / 16 / 2 / 4)).epsilon(1e-3));
}

}  // namespace
}  // namespace lambcast::validate
