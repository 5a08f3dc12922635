// Tables that look wrong, before anybody trusts a fit to them: each suspicion is a sentence for
// people.
//
// Without a forecast:
//
//   columns       busbw / algbw is not that of the operation and ranks, algbw not size / time
//   too little    few rows, sizes that are nearly one, or no large message in a table of several
//   disorder      times that do not grow with sizes
//
// With the forecast of the description as it is before the fit. Per band of size, the median offset
// log(measured / forecast) over what the interval of the forecast (topologies/calibration.h) takes
// for one standard deviation is z, and a way to read the table costs
//
//   sum over bands 4 log(1 + z^2 / 4)      Student's law, so that one strange band proves little
//
// A table is suspected of being something else where another reading costs less by `decisive`, what
// is rarer counted as dearer:
//
//   sizes      of one rank for totals, or the reverse
//   times      in milliseconds, seconds or nanoseconds for microseconds; of busbw for algbw
//   operation  any other
//   layout     of a quarter to four times as many nodes, and GPUs of each; the two swapped
//
// and, where none explains it better than that large messages alone are slow or fast, of a network
// that is set up wrong or of another machine, where they are further off than in one of 200 tables;
// with what each NIC passes.
//
// What cannot be told, and is not: an all_gather over two nodes for an all_reduce, whose tree sends
// as much over them, and the columns out of place for those in place, which are alike.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/cluster.h"
#include "validate/measurement.h"

namespace lambcast::validate {

std::vector<std::string> suspicions_of(const Cluster& before, std::span<const Measurement> tables,
                                       Backend backend);

}  // namespace lambcast::validate
