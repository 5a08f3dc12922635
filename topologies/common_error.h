// How far the errors of a library's collectives on one machine go together.
//
// The logarithm of measured / forecast is taken as a sum of a part that all these collectives have
// in common, of variance r, and an independent part of each, of variance 1 - r:
//
//   operations                                                                    r
//   NCCL: rings and trees, and all operations inside a node                       0.74
//         all_to_all and send_recv over several nodes                             0
//         all operations over TCP where the NIC, not its connections, sets the
//         rate                                                                    0.95
//         by tables of this machine, of what they measured                        0.3
//   MPI: not known                                                                0
//
// 0.74, 0.71 and 0.97 to 0.99 are the correlations of all_gather with all_reduce, reduce_scatter
// with all_reduce, and all_gather with reduce_scatter (13 groups of public nccl-tests tables, 184
// rows, presets not fitted to them); 0.79 that of an all_to_all inside a node; about 0 that of
// 27 rows of all_to_all over nodes. After a fit they are 0.11 to 0.53. Over a NIC that all
// connections share, two operations keep their ratio to a factor of 1.2: with half-widths of 0.55,
// 0.55 sqrt(2 (1 - r)) = ln(1.2).
#pragma once

#include "topologies/cluster.h"

namespace lambcast {

// Returns r above.
double common_error(const Cluster& cluster, Backend backend, Op op, const ProcessGroup& group);

}  // namespace lambcast
