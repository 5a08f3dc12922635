// From a schedule to something the engine can run: every send becomes a flow over the links between
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

// One repetition of a round without its latency. Both times grow with the bytes of the round.
struct RoundTransfer {
  Duration flows;  // until the last has arrived
  Duration hops;   // of a slice as large as the round, over its hops in a row
  Duration local;  // of the slowest send inside a node, with its links to itself
};

struct RoundLatency {
  Duration latency;
  double hidden = 0;  // as CommPhase has it
};

// The latency of a round (the equations of transport.h).
RoundLatency latency_of(const Round& round, const RoundTransfer& transfer, const HopLatency& hop,
                        const Transport& transport, const Protocol& protocol,
                        const Placement& placement);

// Returns the latencies that the hops of a schedule cost over a group of `nodes` nodes.
const HopLatency& hop_of(const Protocol& protocol, Latencies latencies, int nodes);

// A schedule on machines with the same wiring: all of it that rates and protocols do not change.
struct LaidOut {
  Placement placement;
  CommSchedule schedule;
  Routes routes;
  SendClasses classes;
  NodeCaps caps = NodeCaps::none;  // that the classes tell apart
  // Sets folded so far, by number. Not for several threads.
  using Folded = std::map<std::size_t, std::optional<FoldedSends>>;
  std::shared_ptr<Folded> folded = std::make_shared<Folded>();
};

// Every round of a schedule in order, for each protocol. `topology` has the rates.
std::vector<std::vector<RoundTransfer>> transfers_of(const LaidOut& laid, const Topology& topology,
                                                     const Transport& transport,
                                                     const std::vector<const Protocol*>& protocols);

// Whether transfers_of gives the same with either: they differ in latencies alone.
bool transfers_alike(const Transport& a, const Transport& b);

// The closed form of a schedule on its own, every size of it `scale` times as large as written:
//   base + sum over rounds of times * (slowest flow + the latency it does not hide).
Duration time_of(const CommSchedule& schedule, const std::vector<RoundTransfer>& transfers,
                 double scale, const HopLatency& hop, const Transport& transport,
                 const Protocol& protocol, const Placement& placement);

// With `expand` each repetition of a round is an event of its own; without, equal rounds in a row
// are one (same answer, since the fluid model scales).
//
// The flows of all siblings are in the program: groups alike stay in step. Where a NIC serves more
// of them than another, all wait for the slowest in every round.
CommProgram lower(const LaidOut& laid, const Topology& topology,
                  const std::vector<RoundTransfer>& transfers, const Transport& transport,
                  const Protocol& protocol, bool expand);

// The same program for a schedule that has the network to itself, with sends that are alike as one,
// and the links that these use. Links are not found for a set whose shares tell its time
// (fair_share.h). Returns nothing if a set cannot be folded.
struct FoldedProgram {
  CommProgram program;
  std::shared_ptr<const Topology> topology;
};
std::optional<FoldedProgram> lower_folded(const LaidOut& laid, const Topology& topology,
                                          const std::vector<RoundTransfer>& transfers,
                                          const Transport& transport, const Protocol& protocol);

}  // namespace lambcast
