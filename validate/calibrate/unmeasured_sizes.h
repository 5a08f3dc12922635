// What a description says of the sizes below the smallest and above the largest that any table
// holds. Large messages leave open which of the parameters of small ones makes these slow, so a fit
// to them alone may as well choose one that no large message feels: rows at the description's own
// forecast, beside the measured ones, keep it from that.
//
// A row every factor of four from 1 KiB to 1 GiB, of each table's collective and layout. A forecast
// whose interval of 90 % is [low, high] is known to a standard deviation of
//
//   sigma = log(high / low) / (2 * 1.645) * sqrt(n)
//
// in logarithms, n the number of tables: what it is off by is the same in all of them, so together
// they count as one. A residual r of such a row counts as r d / sigma, d the residual from which on
// a measured row is an outlier: as much beside measured rows as the prior of a parameter does
// (least_squares.h).
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
