#include "validate/calibrate/least_squares.h"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>

#include "sim/base/check.h"

namespace lambcast::validate {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double difference_step = 2e-3;
// limit of one parameter's step: a factor of two, as a logarithm
constexpr double longest_step = 0.7;

class Minimiser {
 public:
  explicit Minimiser(const LeastSquares& problem)
      : problem_(problem), prior_((problem.outlier / problem.prior_width.array()).square()) {}

  LeastSquaresFit run() {
    VectorXd x = problem_.first.cwiseMax(problem_.low).cwiseMin(problem_.high);
    VectorXd r = problem_.residuals(x);
    LAMBCAST_CHECK(r.allFinite(), "a residual of the start is not finite");
    double cost = cost_of(x, r);
    int steps = descend(x, r, cost);
    for (int leaps = 0; leaps < problem_.most_leaps && leap(x, r, cost); ++leaps)
      steps += 1 + descend(x, r, cost);
    return finish(x, r, cost, steps);
  }

 private:
  int descend(VectorXd& x, VectorXd& r, double& cost) const {
    double damping = 1e-2;
    int steps = 0;
    for (; steps < problem_.most_steps; ++steps) {
      const MatrixXd j = jacobian(x, r);
      const double before = cost;
      if (!step(j, x, r, cost, damping)) break;
      if (before - cost < 1e-6 * before) break;
    }
    return steps;
  }

  // Tries points at fixed distances along each axis. Moves to the cheapest one if its cost is lower
  // by more than 1 %, and by more than 1 % of the cost of an outlier.
  bool leap(VectorXd& x, VectorXd& r, double& cost) const {
    VectorXd best = x;
    const double worth = cost - 0.01 * std::max(cost, problem_.outlier * problem_.outlier / 2);
    double least = worth;
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      for (const double far : {-1.4, -0.7, -0.35, -0.1, 0.1, 0.35, 0.7, 1.4}) {
        VectorXd moved = x;
        moved[i] = std::clamp(x[i] + far, problem_.low[i], problem_.high[i]);
        const double there = cost_of(moved, problem_.residuals(moved));
        if (there >= least) continue;
        least = there;
        best = moved;
      }
    }
    if (least == worth) return false;
    x = best;
    r = problem_.residuals(x);
    cost = least;
    return true;
  }

  double cost_of(const VectorXd& x, const VectorXd& r) const {
    const double d = problem_.outlier;
    double sum = 0.5 * prior_.dot((x - problem_.start).cwiseAbs2());
    for (const double value : r) {
      const double size = std::abs(value);
      sum += size <= d ? size * size / 2 : d * (size - d / 2);
    }
    return sum;
  }

  VectorXd weights(const VectorXd& r) const {
    return r.unaryExpr([d = problem_.outlier](double value) {
      return std::abs(value) <= d ? 1.0 : d / std::abs(value);
    });
  }

  // Uses forward differences, or backward ones if a forward step would cross the upper bound.
  MatrixXd jacobian(const VectorXd& x, const VectorXd& r) const {
    MatrixXd j(r.size(), x.size());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const double h =
          x[i] + difference_step <= problem_.high[i] ? difference_step : -difference_step;
      VectorXd moved = x;
      moved[i] += h;
      j.col(i) = (problem_.residuals(moved) - r) / h;
    }
    return j;
  }

  MatrixXd curvature(const MatrixXd& j, const VectorXd& r) const {
    return j.transpose() * weights(r).asDiagonal() * j;
  }

  // Removes parameters from the step that the slope pushes beyond their bound, so that the others
  // can move.
  void hold_at_bounds(const VectorXd& x, MatrixXd& a, VectorXd& slope) const {
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      const bool held =
          (x[i] <= problem_.low[i] && slope[i] > 0) || (x[i] >= problem_.high[i] && slope[i] < 0);
      if (!held) continue;
      a.row(i).setZero();
      a.col(i).setZero();
      a(i, i) = 1;
      slope[i] = 0;
    }
  }

  // Takes one step that lowers the cost; returns whether damping found one.
  bool step(const MatrixXd& j, VectorXd& x, VectorXd& r, double& cost, double& damping) const {
    MatrixXd a = curvature(j, r);
    a.diagonal() += prior_;
    VectorXd slope =
        j.transpose() * weights(r).asDiagonal() * r + prior_.cwiseProduct(x - problem_.start);
    hold_at_bounds(x, a, slope);
    for (int attempt = 0; attempt < 8; ++attempt) {
      MatrixXd damped = a;
      damped.diagonal() *= 1 + damping;
      const VectorXd move =
          damped.ldlt().solve(-slope).cwiseMax(-longest_step).cwiseMin(longest_step);
      const VectorXd next = (x + move).cwiseMax(problem_.low).cwiseMin(problem_.high);
      const VectorXd next_r = problem_.residuals(next);
      const double next_cost = cost_of(next, next_r);
      if (next_cost < cost) {
        x = next;
        r = next_r;
        cost = next_cost;
        damping = std::max(damping / 5, 1e-6);
        return true;
      }
      damping *= 4;
    }
    return false;
  }

  LeastSquaresFit finish(const VectorXd& x, const VectorXd& r, double cost, int steps) const {
    const Eigen::Index rows = r.size() - problem_.of_prior;
    const VectorXd data = r.head(rows);
    const MatrixXd j = jacobian(x, r);
    const MatrixXd of_data = curvature(j.topRows(rows), data);
    MatrixXd a = curvature(j, r);
    a.diagonal() += prior_;
    const MatrixXd inverse = a.ldlt().solve(MatrixXd::Identity(x.size(), x.size()));
    const double freedom = std::max<double>(1, static_cast<double>(rows - x.size()));
    const double variance = (weights(data).array() * data.array().square()).sum() / freedom;
    LeastSquaresFit fit;
    fit.x = x;
    fit.residuals = data;
    fit.standard_error = (variance * inverse.diagonal().array()).sqrt();
    fit.from_data = (inverse * of_data).diagonal().cwiseMax(0.0).cwiseMin(1.0);
    fit.cost = cost;
    fit.steps = steps;
    return fit;
  }

  const LeastSquares& problem_;
  VectorXd prior_;  // curvature of the prior along each parameter
};

}  // namespace

LeastSquaresFit minimise(const LeastSquares& problem) { return Minimiser(problem).run(); }

}  // namespace lambcast::validate
