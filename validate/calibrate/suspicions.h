// Tables that look wrong, before anybody trusts a fit to them: each suspicion is a sentence for
// people. The description as it is before the fit knows what such a machine does within a factor of
// about two, so what is far off it, and would not be if the table were read another way, is told:
//
//   sizes of one rank taken for totals, or the reverse   sizes times or over the number of ranks
//   another operation                                    all_reduce, all_gather or reduce_scatter
//   another number of ranks                              twice or half as many
//   a network that is set up wrong                       large messages four times as slow, or more
//   more than the name plate                             large messages twice as fast, or more
//   too little to learn from                             few rows, or sizes that are nearly one
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/cluster.h"
#include "validate/measurement.h"

namespace lambcast::validate {

std::vector<std::string> suspicions_of(const Cluster& before, std::span<const Measurement> tables,
                                       bool mpi);

}  // namespace lambcast::validate
