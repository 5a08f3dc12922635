// Correlation of the errors of NCCL's collectives on one machine.
//
// The logarithm of measured / forecast is modelled as the sum of a part that all of these
// collectives have in common, with the share c of the variance, and an independent part of each:
//
//   operations                                                               c
//   rings and trees over RDMA, and all operations within a node              0.74
//   rings and trees over TCP if its connections are the limit                0.47
//   all_to_all and send_recv over several nodes                              0
//   operations without a root over TCP if the NIC is the limit, not its
//   connections                                                              0.95
//   broadcast and reduce in that case                                        0.74
//   operations that were calibrated on this machine; all_to_all and
//   send_recv over several nodes only if the NIC is the limit                0.3
//   MPI                                                                      unknown, taken as 0
//
// Sources: the correlations of all_gather and of reduce_scatter with all_reduce are 0.74 and 0.71,
// and 0.97 to 0.99 with one another (13 groups of public nccl-tests tables, 184 rows of 1 MiB and
// more, presets not fitted to them). That of all_to_all with all_reduce is 0.79 within a node and
// about 0 over nodes (27 rows). After a fit of the machine the correlations are 0.11 to 0.53.
//
// If all connections share a NIC, the ratio of two operations is known to a factor of 1.2. With
// half widths of 0.55 this is c = 0.95, since 0.55 sqrt(2 (1 - c)) = ln(1.2). Other tables agree,
// from 64 KiB on: on a 1 GbE pair (Open MPI, Juno boards) the logarithms of the ratios of four
// operations are off by 0.02 to 0.12 (rms of a pair of operations, 43 rows), on emulated Ethernet
// of 100 Mbit/s by 0.01 (45 rows). Broadcasts are off by another 0.5 there.
//
// The rate of a connection is known less well than that of a NIC: its logarithm has a standard
// deviation of 0.4 over sites. Only operations that fill few connections have this error, so it is
// not in common. The half-width of NCCL over sockets is 0.9 (calibration.h), so
// 1 - (1.645 x 0.4 / 0.9)^2 = 0.47 remains in common. The NIC is the limit with the probability
//
//   p = Phi(ln(rate of all connections / rate that the NIC reaches) / 0.4)
//
// and c is p times the value for a limit by the NIC, plus 1 - p times the value otherwise.
#pragma once

#include "topologies/cluster.h"

namespace lambcast {

// Returns c for collectives of this kind. The larger c is, the narrower is the interval of the
// ratio of two operations' times.
double common_error(const Cluster& cluster, Backend backend, Op op, const ProcessGroup& group);

}  // namespace lambcast
