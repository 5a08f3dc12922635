// Turns a schedule into a program for the engine: every send becomes a flow over the links between
// its two ends, every round a phase with the latency of the protocol in use.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "sim/collectives/routes.h"
#include "sim/collectives/schedule.h"
#include "sim/collectives/send_classes.h"
#include "sim/collectives/transport.h"
#include "sim/engine/task_graph.h"

namespace lambcast {

// Times of one repetition of a round without latency. All grow with the bytes of the round.
struct RoundTransfer {
  Duration flows;  // time until the last flow has arrived
  Duration hops;   // time of one slice with all bytes of the round, over its hops in sequence
  Duration local;  // time of the slowest send inside a node, without contention
};

struct RoundLatency {
  Duration latency;
  double hidden = 0;  // see CommPhase
};

// Returns the latency of a round (equations in transport.h).
RoundLatency latency_of(const Round& round, const RoundTransfer& transfer, const HopLatency& hop,
                        const Transport& transport, const Protocol& protocol,
                        const Placement& placement);

// Returns the hop latencies of a schedule over a group of `nodes` nodes.
const HopLatency& hop_of(const Protocol& protocol, Latencies latencies, int nodes);

// A schedule with its placement and routes. It depends on the wiring but not on rates or protocols,
// so clusters with the same wiring share it.
struct LaidOut {
  Placement placement;
  CommSchedule schedule;
  Routes routes;
  SendClasses classes;
  NodeCaps caps = NodeCaps::none;  // whether classes depend on node caps
  // Folded send sets found so far, by number of the set. Not thread-safe.
  using Folded = std::map<std::size_t, std::optional<FoldedSends>>;
  std::shared_ptr<Folded> folded = std::make_shared<Folded>();
};

// Returns the transfers of every round of a schedule in order, for each protocol. `topology` has
// the rates.
std::vector<std::vector<RoundTransfer>> transfers_of(const LaidOut& laid, const Topology& topology,
                                                     const Transport& transport,
                                                     const std::vector<const Protocol*>& protocols);

// Returns whether transfers_of() gives the same result with both transports, which then differ only
// in latencies.
bool transfers_alike(const Transport& a, const Transport& b);

// Returns the closed-form time of a schedule on its own, with all sizes multiplied by `scale`: base
// + sum over rounds of times * (slowest flow + the latency that is not hidden).
Duration time_of(const CommSchedule& schedule, const std::vector<RoundTransfer>& transfers,
                 double scale, const HopLatency& hop, const Transport& transport,
                 const Protocol& protocol, const Placement& placement);

// With `expand` each repetition of a round is an event of its own; without it, equal rounds in a
// row are one event (with the same result, since the fluid model scales).
//
// The program has the flows of all siblings, and equal groups stay in step. If one NIC serves more
// groups than another, all groups wait for the slowest in every round.
CommProgram lower(const LaidOut& laid, const Topology& topology,
                  const std::vector<RoundTransfer>& transfers, const Transport& transport,
                  const Protocol& protocol, bool expand);

// The program of a schedule that has the network to itself, with equal sends merged, and the links
// of these sends. Links are not found for a set whose time follows from its shares (fair_share.h).
// Returns nothing if a set cannot be folded.
struct FoldedProgram {
  CommProgram program;
  std::shared_ptr<const Topology> topology;
};
std::optional<FoldedProgram> lower_folded(const LaidOut& laid, const Topology& topology,
                                          const std::vector<RoundTransfer>& transfers,
                                          const Transport& transport, const Protocol& protocol);

}  // namespace lambcast
