#include "sim/collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"
#include "sim/engine/engine.h"

namespace lambcast {
namespace {

// Written out, an all-to-all has a send for every pair of ranks.
constexpr int max_unfolded_ranks = 2048;

void check_size(const CollectiveRequest& request) {
  if (request.op != Op::all_to_all || request.group.ranks <= max_unfolded_ranks) return;
  throw Error(
      Exit::usage,
      fmt::format("an all_to_all over {} ranks that are not alike is too large to write "
                  "out: up to {} ranks, or whole nodes on a single switch with symmetry auto",
                  request.group.ranks, max_unfolded_ranks));
}

bool reduces_in_switch(const Protocol& protocol) { return protocol.in_switch.has_value(); }

// What the library would run: the algorithm that NCCL takes, or where its rule is not known those
// of which the cheapest is.
std::vector<std::string> chosen(const CollectiveRequest& request, const Transport& transport) {
  if (request.library == Library::nccl && transport.tuning) {
    NcclTuning tuning = *transport.tuning;
    if (!request.protocol.empty()) {
      tuning.ll = request.protocol == "LL";
      tuning.ll128 = request.protocol == "LL128";
      tuning.simple = request.protocol == "Simple";
    }
    const ProcessGroup& group = request.group;
    for (const NcclChoice& choice :
         nccl_choices(tuning, request.op, request.size, group.nodes(), group.per_node))
      if (supports(choice.algorithm, request.op, group)) return {std::string(choice.algorithm)};
  }
  return candidates(
      request.library, request.op, request.size, request.group,
      std::any_of(transport.protocols.begin(), transport.protocols.end(), reduces_in_switch));
}

void check_protocol(const CollectiveRequest& request, const Transport& transport) {
  if (request.protocol.empty()) return;
  std::vector<std::string> names;
  for (const Protocol& protocol : transport.protocols) names.push_back(protocol.name);
  for (const std::string& name : names)
    if (name == request.protocol) return;
  fail_unknown({"", 0, "--protocol"}, "protocol", request.protocol, names);
}

}  // namespace

const std::shared_ptr<const Machine>& Machines::folded() {
  if (folded_if_built == nullptr) folded_if_built = build_machine(node, nodes, true, fabric);
  return folded_if_built;
}

const std::shared_ptr<const Machine>& Machines::full() {
  if (full_if_built == nullptr) full_if_built = build_machine(node, nodes, false, fabric);
  return full_if_built;
}

Collective plan_collective(const CollectiveRequest& request, Machines& machines,
                           const Transport& transport) {
  LAMBCAST_CHECK(!transport.protocols.empty(), "a transport without protocols");
  check_protocol(request, transport);
  const std::vector<std::string> algorithms = request.algorithm.empty()
                                                  ? chosen(request, transport)
                                                  : std::vector<std::string>{request.algorithm};
  std::optional<Collective> best;
  for (const std::string& algorithm : algorithms) {
    const bool folded =
        !request.expand && machines.fold && foldable(algorithm, request.op, request.group);
    if (!folded) check_size(request);
    const auto& machine = folded ? machines.folded() : machines.full();
    const Schedule schedule =
        make_schedule(algorithm, request.op, request.size, placed(request.group, *machine));
    for (const Protocol& protocol : transport.protocols) {
      if (!request.protocol.empty() && protocol.name != request.protocol) continue;
      if (request.size > protocol.largest && request.protocol.empty()) continue;
      if (schedule.latencies == Latencies::in_switch && !reduces_in_switch(protocol)) continue;
      auto program = std::make_shared<const CommProgram>(
          lower(schedule, request.group, *machine, transport, protocol, request.expand));
      const Duration time = analytic_time(*program, machine->topology);
      if (!best || time < best->time)
        best = {request.op, request.size,     algorithm,          protocol.name,
                time,       schedule.traffic, std::move(program), machine};
    }
  }
  if (!best && !request.algorithm.empty())
    fail_input({"", 0, "--algorithm"},
               fmt::format("no protocol of this cluster runs {}", request.algorithm));
  LAMBCAST_CHECK(best.has_value(), "no protocol is offered for {} bytes", request.size.value());
  return *best;
}

Duration simulate(const Collective& collective, NetworkModel model) {
  TaskGraph graph;
  const ResourceId stream = graph.add_resource("communication");
  graph.add_communication(collective.algorithm, Category::gradient_comm, stream,
                          collective.program.get());
  const auto network = make_network(model, collective.machine->topology);
  return run(graph, *network).end.since_start();
}

}  // namespace lambcast
