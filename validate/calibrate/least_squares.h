// Robust non-linear least squares with bounds, for few parameters and residuals without derivative.
//
// Minimises over low <= x <= high
//
//   sum_i huber(r_i(x) / d) d^2  +  d^2 / 2 * sum_j ((x_j - start_j) / s_j)^2
//
// with huber(u) = u^2 / 2 for |u| <= 1, |u| - 1/2 beyond (Huber 1964). d is the residual from which
// on a point counts as an outlier. s_j is the distance from the start, in units of x, that costs as
// much as one such residual: a weak prior that keeps parameters in place if the data do not
// determine them. Residuals may belong to the prior too: they are fitted like the others, but do
// not count as data in the results. Method: Levenberg-Marquardt with iteratively reweighted
// residuals, forward differences, steps clipped to the bounds. Residuals may jump (if a model
// switches algorithms). So from a minimum the search can try points further along each axis and
// descend again from a lower one: a leap.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace lambcast::validate {

struct LeastSquares {
  std::function<Eigen::VectorXd(const Eigen::VectorXd&)> residuals;
  Eigen::VectorXd start, low, high;
  Eigen::VectorXd first;        // start of the search; often `start`
  double outlier = 0.05;        // d
  Eigen::VectorXd prior_width;  // s
  Eigen::Index of_prior = 0;    // number of the last residuals that belong to the prior
  int most_steps = 40;
  int most_leaps = 0;
};

struct LeastSquaresFit {
  Eigen::VectorXd x;
  Eigen::VectorXd residuals;  // residuals of the data
  // Standard error of each x_j: square root of the diagonal of v A^-1, A = J'WJ + prior, with v the
  // weighted mean square of the residuals of the data over their degrees of freedom.
  Eigen::VectorXd standard_error;
  // Movement of x_j if the data move it by one and the prior stays: the diagonal of A^-1 D, with D
  // the data's part of J'WJ. 0: the data determine nothing; 1: the data determine it completely.
  Eigen::VectorXd from_data;
  double cost = 0;
  int steps = 0;
};

LeastSquaresFit minimise(const LeastSquares& problem);

}  // namespace lambcast::validate
