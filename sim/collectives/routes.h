// Links that the sends of a schedule use on a machine, and the rate of each send on them. Found
// once for all protocols.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "sim/collectives/schedule.h"
#include "sim/collectives/transport.h"
#include "sim/network/machine.h"
#include "sim/network/network.h"
#include "sim/network/router.h"

namespace lambcast {

// Indexed by CommSchedule::send_sets: first the paths of the first sibling's sends, then those of
// the next.
using Routes = std::vector<std::shared_ptr<const Paths>>;

// Limit of links kept at a time while shares are found. If 2,048 ranks all send to each other at
// once, the links of the four million flows would take 170 MB, and storing them would take longer
// than finding them twice.
inline constexpr std::size_t most_links_kept = 1 << 21;

// `router` must belong to the machine's topology. The paths keep both, and use the router when
// their links are requested. A group with a place shares the machine with others, which needs the
// links of all: they are found once and kept.
Routes find_routes(const CommSchedule& schedule, const ProcessGroup& group,
                   const std::shared_ptr<const Machine>& machine, Endpoint endpoint,
                   const std::shared_ptr<Router>& router, const std::optional<Place>& beside = {});

// Returns the same routes on a machine with the same wiring. Paths whose shares are the same there
// are not copied.
Routes on(const Topology& topology, const Routes& routes);

}  // namespace lambcast
