// The links that the sends of a schedule take on a machine, and what they leave each: found once,
// whatever the protocol.
#pragma once

#include <memory>
#include <vector>

#include "sim/collectives/schedule.h"
#include "sim/collectives/transport.h"
#include "sim/network/machine.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace lambcast {

// By CommSchedule::send_sets: the paths of the first sibling's sends, then of the next one's.
using Routes = std::vector<std::shared_ptr<const Paths>>;

// At a time, while shares are found. The four million flows of 2,048 ranks that all write to each
// other at once would take 170 MB of links, and longer to fill them than to find them twice.
inline constexpr std::size_t most_links_kept = 1 << 21;

// `router` is that of the machine's topology. The paths keep both, and use the router where they
// are asked for their links.
Routes find_routes(const CommSchedule& schedule, const ProcessGroup& group,
                   const std::shared_ptr<const Machine>& machine, Endpoint endpoint,
                   const std::shared_ptr<Router>& router, const Place& place = {});

// The same routes where the same links have other capacities: what each flow gets of them.
void share_again(Routes& routes, const CommSchedule& schedule, const ProcessGroup& group,
                 const Topology& topology);

}  // namespace lambcast
