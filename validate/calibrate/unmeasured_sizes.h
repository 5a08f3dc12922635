// Adds rows for sizes below the smallest and above the largest in any table. From large messages it
// cannot be determined which parameter makes small ones slow; a fit to large ones only might choose
// any. Rows with the description's own forecast, next to the measured ones, prevent that.
//
// There is one row for every factor of four from 1 KiB to 1 GiB, for each table's collective and
// layout. If the forecast has the 90 % interval [low, high], its standard deviation in logarithms
// is
//
//   sigma = log(high / low) / (2 * 1.645) * sqrt(n)
//
// with n the number of tables: all have the same error, so together they count as one. A residual r
// of such a row enters as r d / sigma, with d the residual from which on a measured row is an
// outlier. That is the weight of a parameter's prior (least_squares.h).
#pragma once

#include <span>
#include <vector>

#include "topologies/cluster.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct UnmeasuredSize {
  std::size_t table;
  Bytes size;
  Duration forecast;
  double sigma = 0;
};

std::vector<UnmeasuredSize> unmeasured_sizes(const Cluster& before,
                                             std::span<const Measurement> tables, Backend backend);

}  // namespace lambcast::validate
