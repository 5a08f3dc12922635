// Finds tables that look wrong before a fit; each suspicion is a sentence for the user.
//
// Without a forecast:
//
//   columns       busbw / algbw does not match the operation and ranks, or algbw is not size / time
//   too little    few rows, nearly equal sizes, or no large message in a table of several
//   disorder      times that do not grow with sizes
//
// With the forecast of the description before the fit: for each size band, z is the median of
// log(measured / forecast) in standard deviations, from the interval of the forecast
// (topologies/calibration.h). A reading of a table costs
//
//   sum over bands 4 log(1 + z^2 / 4)      Student's law, so that one band alone proves little
//
// A table is suspected if another reading costs less by `decisive`; rare readings have a penalty:
//
//   sizes      of one rank instead of totals, or the reverse
//   times      in milliseconds, seconds or nanoseconds instead of microseconds; busbw for algbw
//   operation  any other
//   layout     a quarter to four times as many nodes, or GPUs of each; the two swapped
//
// If the best explanation is that only large messages are slow or fast, and they are further off
// than in one of 200 tables, a wrongly configured network or another machine is suspected; the
// message has the rate of each NIC.
//
// Not detectable: an all_gather over two nodes in place of an all_reduce, whose tree sends as many
// bytes between them, and out-of-place columns in place of in-place ones, which are alike.
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
