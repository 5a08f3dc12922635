// Describes patterns in the residuals of a poor fit.
//
// The residual of a row is r = log(measured / forecast), for the fit on all data. A pattern is
// named if it explains most of the residuals:
//
//   a table     one of several tables is off, while the others agree with one another
//   waiting     large messages of a table take the same time at any size: many to one over TCP,
//               where a lost window waits to be sent again (RTO, 200 ms under Linux)
//   a step      from one size on, all rows are slower or faster by one factor: another algorithm,
//               protocol or number of NICs is used there
//   scatter     rows jump from one size to the next: the machine was busy
//
// For a fit of any quality, it names a row that is off by at least a factor of two from its four
// nearest sizes, and by four times their spread. Rows of equal size are combined, since the same
// outlier in several tables points to a fault rather than chance.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "validate/measurement.h"

namespace lambcast::validate {

struct Residual {
  std::size_t table;
  Bytes size;
  double slower;  // r
};

// Names misfits of tables whose median |r| is above `poor`, or whose 90th percentile is above twice
// that, and of rows in any table.
std::vector<std::string> misfits_of(std::span<const Measurement> tables,
                                    const std::vector<Residual>& residuals, double poor);

}  // namespace lambcast::validate
