#include "sim/collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"
#include "sim/engine/engine.h"

namespace lambcast {
namespace {

// What is not folded is written out rank by rank; an all-to-all has a send for every pair.
constexpr int max_unfolded_ranks = 65536, max_unfolded_all_to_all = 2048;

void check_size(const CollectiveRequest& request) {
  const int most = request.op == Op::all_to_all ? max_unfolded_all_to_all : max_unfolded_ranks;
  if (request.group.ranks <= most) return;
  throw Error(Exit::usage,
              fmt::format("an {} over {} ranks that are not alike is too large to write out: up to "
                          "{} ranks, or whole nodes on full leaves or a single switch with "
                          "symmetry auto",
                          name_of(request.op), request.group.ranks, most));
}

bool reduces_in_switch(const Protocol& protocol) { return protocol.in_switch.has_value(); }

Machines::Wired wired(std::shared_ptr<const Machine> machine) {
  auto router = std::make_unique<Router>(machine->topology);
  return {std::move(machine), std::move(router)};
}

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

Machines::Machines(const NodeSpec& node, int nodes, Fabric fabric, int nodes_alike)
    : node_(node), nodes_(nodes), fabric_(std::move(fabric)), nodes_alike_(nodes_alike) {}

Machines::Wired& Machines::folded() {
  if (folded_.machine == nullptr)
    folded_ = wired(build_folded_machine(node_, nodes_, nodes_alike_, fabric_));
  return folded_;
}

Machines::Wired& Machines::full() {
  if (full_.machine == nullptr) full_ = wired(build_machine(node_, nodes_, fabric_));
  return full_;
}

Collective plan_collective(const CollectiveRequest& request, Machines& machines,
                           const Transport& transport) {
  LAMBCAST_CHECK(!transport.protocols.empty(), "a transport without protocols");
  check_protocol(request, transport);
  const std::vector<std::string> algorithms = request.algorithm.empty()
                                                  ? chosen(request, transport)
                                                  : std::vector<std::string>{request.algorithm};
  const Place place = request.beside.value_or(Place());
  std::optional<Collective> best;
  for (const std::string& algorithm : algorithms) {
    const bool folded = !request.expand && !request.beside &&
                        foldable(algorithm, request.group, machines.nodes_alike());
    if (!folded) check_size(request);
    const auto& [machine, router] = folded ? machines.folded() : machines.full();
    const Schedule schedule =
        make_schedule(algorithm, request.op, request.size, placed(request.group, *machine, place));
    const Routes routes =
        find_routes(schedule, request.group, *machine, transport.endpoint, *router, place);
    for (const Protocol& protocol : transport.protocols) {
      if (!request.protocol.empty() && protocol.name != request.protocol) continue;
      if (request.size > protocol.largest && request.protocol.empty()) continue;
      if (schedule.latencies == Latencies::in_switch && !reduces_in_switch(protocol)) continue;
      auto program = std::make_shared<const CommProgram>(lower(
          schedule, routes, request.group, *machine, transport, protocol, request.expand, place));
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
