// What the rows that a fit leaves over look like: where it is poor, in words for people.
//
// Per row, r = log(measured / forecast) of the fit on everything. Named are, each where it explains
// most of what is left:
//
//   a table     of several that is off by itself, while the others agree with one another
//   waiting     large messages of a table that take as long whatever their size: many to one over
//               TCP, where a lost window waits to be sent again (RTO, 200 ms under Linux)
//   a step      a size from which on all rows are slower or faster by one factor: another
//               algorithm, protocol or number of NICs took over there
//   scatter     rows that jump from one size to the next: the machine was busy
//
// and, however good the fit of the rest, a row that is off by a factor of two and more from where
// the four sizes nearest to it lie, and four times as far as these are apart: by size, since what
// one table has by chance several have by a fault.
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
