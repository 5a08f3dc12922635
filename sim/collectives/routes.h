// The links that the sends of a schedule take on a machine: found once, whatever the protocol.
#pragma once

#include <vector>

#include "sim/collectives/schedule.h"
#include "sim/collectives/transport.h"
#include "sim/network/machine.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace lambcast {

// Of one set of sends, of the first sibling, then the next: flow i takes links [first[i],
// first[i + 1]), which leave it shares[i].
struct RoutedSends {
  SharedLinks links;
  std::vector<std::uint32_t> first;
  SharedShares shares;
};

using Routes = std::vector<RoutedSends>;  // by Schedule::send_sets

Routes find_routes(const Schedule& schedule, const ProcessGroup& group, const Machine& machine,
                   Endpoint endpoint, Router& router, const Place& place = {});

}  // namespace lambcast
