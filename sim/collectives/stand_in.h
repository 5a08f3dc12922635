// The time of a collective that is too large to write out and cannot be folded: between, or beyond,
// those of two groups of the same shape.
//
//   full parts      the groups with the last part of the machine left out, and filled: the time
//                   grows linearly in the ranks between them
//   smaller groups  if full parts do not fold either: groups of at most 16,384 and half as many
//                   ranks; the time grows with log2 of the ranks beyond them, or linearly in them
//                   for algorithms with as many rounds as ranks
//
// The true time is taken to differ from the interpolated one by no more than the farther of both,
// or by a tenth if that is more (assumed): a leaf that is filled in part loads its uplinks
// otherwise than a full one.
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string_view>

#include "sim/collectives/collective.h"

namespace lambcast {

struct StandIns {
  std::array<ProcessGroup, 2> groups;
  double share = 0;  // of the way from the first group's time to the second's
};

// Returns groups that `can_write` takes, or nothing if the machine's nodes are not alike, as in a
// torus.
using CanWrite = std::function<bool(const ProcessGroup&)>;
std::optional<StandIns> stand_ins(std::string_view algorithm, const ProcessGroup& group,
                                  int nodes_alike, const CanWrite& can_write);

// Plans `request`, whose algorithm is named, by both groups.
Collective plan_by(const StandIns& groups, const CollectiveRequest& request, Machines& machines,
                   const Transport& transport);

}  // namespace lambcast
