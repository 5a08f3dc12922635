// The time of a collective that is too large to write out and cannot be folded, interpolated
// between or extrapolated from the times of two groups of the same shape.
//
//   full parts      groups without and with a filled last part of the machine; between them the
//                   time grows linearly with the ranks
//   smaller groups  if full parts do not fold either: groups of at most 16,384 and half as many
//                   ranks; beyond them the time grows with log2 of the ranks, or linearly for
//                   algorithms with as many rounds as ranks
//
// The true time is assumed to differ from this estimate by no more than the farther of both times
// does, or by a tenth if that is more: a partly filled leaf loads its uplinks differently.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "sim/collectives/collective.h"

namespace lambcast {

struct StandIns {
  std::array<ProcessGroup, 2> groups;
  double share = 0;  // position between the first group's time (0) and the second's (1)
};

// Returns groups that `can_write` accepts, or nothing if the machine's nodes are not alike, as in a
// torus.
using CanWrite = std::function<bool(const ProcessGroup&)>;
std::optional<StandIns> stand_ins(std::string_view algorithm, const ProcessGroup& group,
                                  int nodes_alike, const CanWrite& can_write);

// Plans `request` from the plans of both groups. The request must name its algorithm.
Collective plan_by(const StandIns& groups, const CollectiveRequest& request, Machines& machines,
                   const Transport& transport);

}  // namespace lambcast
