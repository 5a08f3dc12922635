// From a schedule to something the engine can run: every send becomes a flow over the links between
// its two ends, every round a phase with the latency of the protocol in use.
#pragma once

#include "sim/collectives/routes.h"
#include "sim/collectives/schedule.h"
#include "sim/collectives/transport.h"
#include "sim/engine/task_graph.h"
#include "sim/network/machine.h"

namespace lambcast {

// With `expand` each repetition of a round is an event of its own; without, equal rounds in a row
// are one (same answer, since the fluid model scales).
//
// The flows of all siblings are in the program: groups alike stay in step. Where a NIC serves more
// of them than another, all wait for the slowest in every round.
CommProgram lower(const Schedule& schedule, const Routes& routes, const ProcessGroup& group,
                  const Machine& machine, const Transport& transport, const Protocol& protocol,
                  bool expand, const Place& place = {});

// The closed form of a program on its own:
//   fixed + sum over phases of times * (slowest flow + the latency it does not hide).
Duration analytic_time(const CommProgram& program, const Topology& topology);

}  // namespace lambcast
