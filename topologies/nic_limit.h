// The most that the NICs of a node carry: no forecast moves its bytes faster, nor does the low end
// of any interval.
//
// A NIC carries no more than its nominal rate. An override of nic.bandwidth alone asks about a
// slower NIC, whose nominal rate nobody states. With b the rate asked for, d the description's own
// and N its nominal rate, the limit of a NIC is then
//
//   max(b, N (b / d)^8)     for b < d
//
// The limit is N if nothing changes, and b from about 0.7 d on (for N = 10 d): what one machine
// reached beyond its described rate holds for that NIC alone. The exponent is assumed; it keeps the
// limit continuous, with a slope that a change of 0.01 % in b moves it by 0.08 %.
#pragma once

#include "sim/base/overrides.h"
#include "sim/base/table.h"
#include "topologies/cluster.h"

namespace lambcast {

// Returns the limit of each NIC of `cluster`, which is `description` with `overrides` applied.
Bandwidth nic_limit(const Cluster& cluster, const Table& description, const Overrides& overrides);

// Returns the time in which all NICs of a node send `bytes` at their limit.
Duration least_time_on_nics(const Cluster& cluster, Bytes bytes);

}  // namespace lambcast
