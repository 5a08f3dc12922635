// Robust non-linear least squares with bounds, for few parameters and residuals without derivative.
//
// Minimises over low <= x <= high
//
//   sum_i huber(r_i(x) / d) d^2  +  d^2 / 2 * sum_j ((x_j - start_j) / s_j)^2
//
// with huber(u) = u^2 / 2 for |u| <= 1, |u| - 1/2 beyond (Huber 1964), d the residual from which on
// a point counts as an outlier, and s_j how far, in units of x, a parameter may stray from where it
// starts before it costs as much as one such residual: a weak prior that keeps what the data do not
// determine where it was. Residuals may be of that prior too: they are fitted as the others are,
// and count among the prior where it is asked what the data say. Method: Levenberg-Marquardt with
// iteratively reweighted residuals, forward differences, steps clipped to the bounds. Residuals may
// jump (a model that switches algorithms), so from a resting place it can look some way along each
// axis and descend again from what is lower there: a leap.
#pragma once

#include <Eigen/Core>
#include <functional>

namespace lambcast::validate {

struct LeastSquares {
  std::function<Eigen::VectorXd(const Eigen::VectorXd&)> residuals;
  Eigen::VectorXd start, low, high;
  Eigen::VectorXd first;        // where to begin to look; often `start`
  double outlier = 0.05;        // d
  Eigen::VectorXd prior_width;  // s
  Eigen::Index of_prior = 0;    // so many of the residuals, the last ones, are no data
  int most_steps = 40;
  int most_leaps = 0;
};

struct LeastSquaresFit {
  Eigen::VectorXd x;
  Eigen::VectorXd residuals;  // of the data
  // Standard error of each x_j: square root of the diagonal of v A^-1, A = J'WJ + prior, with v the
  // weighted mean square of the residuals of the data over their degrees of freedom.
  Eigen::VectorXd standard_error;
  // Movement of x_j if the data moved it by one and the prior stayed: the diagonal of A^-1 D, D the
  // data's part of J'WJ. 0: the data determine nothing; 1: everything.
  Eigen::VectorXd from_data;
  double cost = 0;
  int steps = 0;
};

LeastSquaresFit minimise(const LeastSquares& problem);

}  // namespace lambcast::validate
