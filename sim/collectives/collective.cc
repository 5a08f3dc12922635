#include "sim/collectives/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "sim/base/check.h"
#include "sim/base/error.h"
#include "sim/collectives/algorithms.h"
#include "sim/collectives/chosen.h"
#include "sim/collectives/double_tree.h"
#include "sim/collectives/stand_in.h"
#include "sim/network/effort.h"

namespace lambcast {
namespace {

// Limits of machines that are not folded but written rank by rank. An all-to-all has n^2 flows.
constexpr int max_unfolded_ranks = 65536, max_unfolded_all_to_all = 2048;

// Moves the nodes of a group closer together if the routes stay equivalent: nodes in different full
// leaves are equally far from each other, and under a single switch all nodes are.
CollectiveRequest drawn_together(CollectiveRequest request, int nodes_alike) {
  int& stride = request.group.node_stride;
  const bool as_asked = request.expand || request.beside;
  if (!as_asked && nodes_alike > 0 && stride % nodes_alike == 0) stride = nodes_alike;
  return request;
}

// Returns the number of parts that are written out to represent all parts; zero: not folded.
int parts_of(const CollectiveRequest& request, std::string_view algorithm, int nodes_alike) {
  return request.expand || request.beside ? 0
                                          : parts_written(algorithm, request.group, nodes_alike);
}

// Returns the number of ranks in `parts` parts.
std::int64_t ranks_written(const CollectiveRequest& request, int parts, int nodes_alike) {
  const ProcessGroup& group = request.group;
  if (parts == 0) return group.ranks;
  const int nodes = std::max(1, nodes_alike / group.node_stride);
  return std::int64_t{parts} * nodes * group.per_node;
}

int most_written(Op op, std::string_view algorithm) {
  const bool has_all_pairs = op == Op::all_to_all && algorithm != "bruck";
  return has_all_pairs ? max_unfolded_all_to_all : max_unfolded_ranks;
}

bool can_write(const CollectiveRequest& request, std::string_view algorithm, int nodes_alike) {
  const int parts = parts_of(request, algorithm, nodes_alike);
  return parts == 1 ||
         ranks_written(request, parts, nodes_alike) <= most_written(request.op, algorithm);
}

// Throws Error (usage) if the collective is too large; it names the algorithm that does not fold,
// and those that would.
void check_size(const CollectiveRequest& request, std::string_view algorithm, int parts,
                int nodes_alike) {
  if (can_write(request, algorithm, nodes_alike)) return;
  std::string others;
  for (const std::string& other : algorithm_names())
    if (supports(other, request.op, request.group) && parts_of(request, other, nodes_alike) == 1)
      others += (others.empty() ? "" : ", ") + other;
  const std::string why =
      parts > 1 ? fmt::format(", in which {} leaf switches are like no other", parts) : "";
  const std::string what =
      fmt::format("{} over {} ranks", name_of(request.op), request.group.ranks);
  throw Error(
      Exit::usage,
      others.empty()
          ? fmt::format(
                "{}: too many ranks to simulate one by one (allowed: up to {}, or more if all "
                "nodes are equivalent: full nodes, full leaf switches or a single switch, "
                "symmetry auto)",
                what, most_written(request.op, algorithm))
          : fmt::format("{}: too many ranks to simulate one by one under {}{} (allowed: up to {}, "
                        "or one of {} by --algorithm, in runs by nccl.all_reduce or "
                        "mpi.all_reduce of the cluster)",
                        what, algorithm, why, most_written(request.op, algorithm), others));
}

// Measures time: stop() adds the time since the last call, or since creation, to a total.
class Stopwatch {
 public:
  void stop(std::chrono::nanoseconds& total) {
    const auto now = std::chrono::steady_clock::now();
    total += now - last_;
    last_ = now;
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

bool reduces_in_switch(const Protocol& protocol) { return protocol.in_switch.has_value(); }

// Returns NCCL's protocol for messages between two ranks (src/enqueue.cc, addP2pToPlan): LL up to
// 16 KiB inside a node (NCCL_P2P_LL_THRESHOLD), else Simple. Over the network LL has no buffers
// unless NCCL_ALLOC_P2P_NET_LL_BUFFERS is set.
std::string_view nccl_message_protocol(const CollectiveRequest& request) {
  constexpr Bytes ll_up_to{16384};
  const ProcessGroup& group = request.group;
  const Bytes message = request.op == Op::all_to_all ? request.size / group.ranks : request.size;
  return group.nodes() == 1 && message <= ll_up_to ? "LL" : "Simple";
}

bool has(const std::vector<Protocol>& protocols, std::string_view name) {
  return std::any_of(protocols.begin(), protocols.end(),
                     [&](const Protocol& protocol) { return protocol.name == name; });
}

// Returns whether the request consists of NCCL's messages between two ranks, which have rules of
// their own.
bool is_messages(const CollectiveRequest& request) {
  return request.rules == DecisionRules::nccl &&
         (request.op == Op::all_to_all || request.op == Op::send_recv);
}

// Returns the protocol that the request must use; empty: the cheapest of several.
std::string_view bound_protocol(const CollectiveRequest& request, const Transport& transport) {
  if (!request.protocol.empty()) return request.protocol;
  if (!is_messages(request)) return {};
  const std::string_view name = nccl_message_protocol(request);
  const bool known = has(transport.protocols, name) || has(transport.of_messages, name);
  return known ? name : std::string_view();
}

// Returns whether the library would run this schedule with the protocol.
bool offered(const Protocol& protocol, const CollectiveRequest& request, Latencies latencies,
             std::string_view bound) {
  if (latencies == Latencies::in_switch && !reduces_in_switch(protocol)) return false;
  if (latencies == Latencies::in_network && protocol.name != "Simple") return false;
  return bound.empty() ? request.size <= protocol.largest : protocol.name == bound;
}

// Returns all protocols that the request may use.
std::vector<const Protocol*> known_protocols(const CollectiveRequest& request,
                                             const Transport& transport) {
  std::vector<const Protocol*> known;
  for (const Protocol& protocol : transport.protocols) known.push_back(&protocol);
  if (is_messages(request))
    for (const Protocol& protocol : transport.of_messages) known.push_back(&protocol);
  return known;
}

Placement placement_of(const CollectiveRequest& request, const Machine& machine,
                       const Transport& transport, const Place& place = {}) {
  Placement placement = placed(request.group, machine, place);
  placement.by_rail_of_receiver = transport.pxn && is_messages(request);
  return placement;
}

// Returns the groups that replace one that is too large (stand_in.h), if there are any.
std::optional<StandIns> groups_for(const CollectiveRequest& request, std::string_view algorithm,
                                   int nodes_alike) {
  const bool as_asked = request.expand || request.beside;
  if (as_asked || can_write(request, algorithm, nodes_alike)) return std::nullopt;
  return stand_ins(algorithm, request.group, nodes_alike, [&](const ProcessGroup& group) {
    CollectiveRequest of = request;
    of.group = group;
    return supports(algorithm, of.op, group) && can_write(of, algorithm, nodes_alike);
  });
}

// Returns how many parts suffice for trees. A folded machine with one part already has the uplinks
// of all parts.
int of_trees(const CollectiveRequest& request, Machines& machines) {
  const Placement placement = placed(request.group, *machines.folded(1).machine);
  const auto parts = busiest_parts(placement.nodes(), placement.part, placement.uplinks);
  return static_cast<int>(parts->parts.size());
}

// Returns the folded machine if some parts can represent all, else a full one.
Machines::Wired& machine_for(const CollectiveRequest& request, std::string_view algorithm,
                             Machines& machines) {
  const int parts = parts_of(request, algorithm, machines.nodes_alike());
  check_size(request, algorithm, parts, machines.nodes_alike());
  if (parts > 1) return machines.folded(of_trees(request, machines));
  if (parts == 1) return machines.folded(1);
  return request.expand || request.beside ? machines.full() : machines.around(request.group);
}

NodeCaps caps_of(const std::vector<const Protocol*>& protocols) {
  const bool some = std::ranges::any_of(
      protocols, [](const Protocol* protocol) { return protocol->node_cap.value() > 0; });
  return some ? NodeCaps::some : NodeCaps::none;
}

// `other_size` is the same schedule at another size, if known; its routes are reused.
std::shared_ptr<const LaidOut> lay_out(const CollectiveRequest& request,
                                       const std::string& algorithm, Machines::Wired& wired,
                                       const Transport& transport, NodeCaps caps,
                                       const LaidOut* other_size = nullptr) {
  Stopwatch watch;
  const Place place = request.beside.value_or(Place());
  LaidOut laid;
  laid.placement = placement_of(request, *wired.machine, transport, place);
  laid.caps = caps;
  laid.schedule = make_schedule(algorithm, request.op, request.size, laid.placement);
  watch.stop(effort().lowering);
  ++effort().lowered;
  if (other_size != nullptr) {
    laid.routes = other_size->routes;
    laid.classes = other_size->classes;
    laid.folded = other_size->folded;
    return std::make_shared<const LaidOut>(std::move(laid));
  }
  laid.routes = find_routes(laid.schedule, request.group, wired.machine, transport.endpoint,
                            wired.router(), request.beside);
  watch.stop(effort().routing);
  for (const auto& paths : laid.routes) effort().routes += static_cast<std::int64_t>(paths->size());
  laid.classes = send_classes(laid.schedule, laid.routes, laid.placement, caps);
  watch.stop(effort().lowering);
  return std::make_shared<const LaidOut>(std::move(laid));
}

// Returns the schedule from the cache of machines with this wiring, or lays it out.
std::shared_ptr<const LaidOut> laid_out(const CollectiveRequest& request,
                                        const std::string& algorithm, Machines& machines,
                                        Machines::Wired& wired, const Transport& transport) {
  const NodeCaps caps = caps_of(known_protocols(request, transport));
  LaidOuts* const kept = request.expand ? nullptr : machines.laid_outs();
  if (kept == nullptr) return lay_out(request, algorithm, wired, transport, caps);
  const LaidOuts::Key key(machines.wiring(), algorithm, request.op, request.group, request.beside,
                          machines.nodes(), transport.endpoint,
                          transport.pxn && is_messages(request), caps, request.size.value());
  if (auto known = kept->find(key)) return known;
  auto laid = lay_out(request, algorithm, wired, transport, caps, kept->of_other_size(key).get());
  kept->keep(key, laid);
  return laid;
}

void check_protocol(const CollectiveRequest& request, const Transport& transport) {
  if (request.protocol.empty()) return;
  std::vector<std::string> names;
  for (const Protocol* protocol : known_protocols(request, transport)) {
    if (protocol->name == request.protocol) return;
    names.push_back(protocol->name);
  }
  fail_unknown({"", 0, "--protocol"}, "protocol", request.protocol, names);
}

void check_found(bool found, const CollectiveRequest& request) {
  if (!found && !request.algorithm.empty())
    fail_input({"", 0, "--algorithm"},
               fmt::format("no protocol of this cluster runs {}", request.algorithm));
  LAMBCAST_CHECK(found, "no protocol is offered for {} bytes", request.size.value());
}

void write_program(Collective& collective, const CollectiveRequest& request, const LaidOut& laid,
                   const std::vector<RoundTransfer>& transfers, const Transport& transport,
                   const Protocol& protocol) {
  const Topology& topology = collective.machine->topology;
  if (!request.expand && !request.beside)
    if (auto folded = lower_folded(laid, topology, transfers, transport, protocol)) {
      collective.program = std::make_shared<const CommProgram>(std::move(folded->program));
      collective.topology = std::move(folded->topology);
      return;
    }
  collective.program = std::make_shared<const CommProgram>(
      lower(laid, topology, transfers, transport, protocol, request.expand));
  collective.topology = {collective.machine, &topology};
}

}  // namespace

Collective plan_collective(const CollectiveRequest& asked, Machines& machines,
                           const Transport& transport) {
  const CollectiveRequest request = drawn_together(asked, machines.nodes_alike());
  LAMBCAST_CHECK(!transport.protocols.empty(), "a transport without protocols");
  check_protocol(request, transport);
  const std::string_view bound = bound_protocol(request, transport);
  std::optional<Collective> best;
  const Chosen run = chosen_for(request, transport);
  for (const std::string& algorithm : run.costed) {
    if (const auto by = groups_for(request, algorithm, machines.nodes_alike())) {
      CollectiveRequest named = request;
      named.algorithm = algorithm;
      Collective planned = plan_by(*by, named, machines, transport);
      if (!best || planned.time < best->time) best = std::move(planned);
      continue;
    }
    Machines::Wired& wired = machine_for(request, algorithm, machines);
    const std::shared_ptr<const Machine>& machine = wired.machine;
    const auto laid = laid_out(request, algorithm, machines, wired, transport);
    const CommSchedule& schedule = laid->schedule;
    std::vector<const Protocol*> protocols;
    for (const Protocol* protocol : known_protocols(request, transport))
      if (offered(*protocol, request, schedule.latencies, bound)) protocols.push_back(protocol);
    Stopwatch watch;
    const auto transfers = transfers_of(*laid, machine->topology, transport, protocols);
    std::optional<std::size_t> cheapest;
    for (std::size_t p = 0; p < protocols.size(); ++p) {
      const HopLatency& hop = hop_of(*protocols[p], schedule.latencies, request.group.nodes());
      const Duration time =
          time_of(schedule, transfers[p], 1, hop, transport, *protocols[p], laid->placement);
      if (best && best->time <= time) continue;
      cheapest = p;
      best = {request.op, request.size,     algorithm,         protocols[p]->name,
              time,       schedule.traffic, machine,           nullptr,
              nullptr,    algorithm,        schedule.everybody};
    }
    if (cheapest && !request.priced_alone)
      write_program(*best, request, *laid, transfers[*cheapest], transport, *protocols[*cheapest]);
    watch.stop(effort().lowering);
  }
  check_found(best.has_value(), request);
  if (!run.algorithm.empty()) best->chosen = run.algorithm;
  return *best;
}

Tip tip_of(const CollectiveRequest& asked, Machines& machines, const Transport& transport,
           Duration time, NetworkModel network) {
  CollectiveRequest request = drawn_together(asked, machines.nodes_alike());
  request.priced_alone = network == NetworkModel::analytic && !request.expand;
  if (request.group.ranks == 1) return {};
  const auto timed = [&](const CollectiveRequest& of, bool at_tip) -> std::optional<Rival> {
    const std::string algorithm = chosen_for(of, transport).costed.front();
    const int nodes = machines.nodes_alike();
    if (!can_write(of, algorithm, nodes) && !groups_for(of, algorithm, nodes)) return std::nullopt;
    const Collective planned = plan_collective(of, machines, transport);
    return Rival{planned.algorithm, planned.protocol,
                 of.priced_alone ? planned.time : simulate(planned, network), at_tip};
  };
  Tip tip;
  if (const auto rival = rival_of(request, transport)) {
    CollectiveRequest other = request;
    other.algorithm = rival->algorithm;
    tip.rival = timed(other, rival->at_tip);
  }
  CollectiveRequest twice = request;
  twice.size = request.size * 2;
  const bool alike = runs_alike(request, twice, transport) &&
                     bound_protocol(request, transport) == bound_protocol(twice, transport);
  tip.twice = alike ? std::nullopt : timed(twice, false);
  if (tip.twice && tip.twice->time >= time) tip.twice.reset();
  return tip;
}

CollectiveCurve::CollectiveCurve(const CollectiveRequest& request,
                                 std::shared_ptr<const Transport> transport, Machines machines)
    : request_(drawn_together(request, machines.nodes_alike())),
      transport_(std::move(transport)),
      machines_(std::move(machines)) {}

void CollectiveCurve::reprice(std::shared_ptr<const Transport> transport, Machines machines) {
  const bool transferred =
      machines.node() == machines_.node() && transfers_alike(*transport, *transport_);
  if (transport->tuning != transport_->tuning || transport->measured != transport_->measured)
    choices_.clear();
  for (auto& [algorithm, variant] : variants_) {
    variant.priced = false;
    variant.transferred &= transferred;
  }
  transport_ = std::move(transport);
  if (!transferred) machines_ = std::move(machines);
}

Machines::Wired& CollectiveCurve::machine_of(const std::string& algorithm) {
  return machine_for(request_, algorithm, machines_);
}

CollectiveCurve::Variants::value_type& CollectiveCurve::variant(const std::string& algorithm) {
  const auto at = variants_.find(algorithm);
  return at != variants_.end() ? *at : *variants_.emplace(algorithm, written_out(algorithm)).first;
}

CollectiveCurve::Variant CollectiveCurve::written_out(const std::string& algorithm) {
  CollectiveRequest request = request_;
  request.size = reference_size;
  const NodeCaps caps = caps_of(known_protocols(request_, *transport_));
  return {lay_out(request, algorithm, machine_of(algorithm), *transport_, caps), {}};
}

const CollectiveCurve::Variant& CollectiveCurve::priced(Variants::value_type& of) {
  auto& [algorithm, variant] = of;
  if (variant.priced) return variant;
  if (variant.laid->caps != caps_of(known_protocols(request_, *transport_)))
    variant = written_out(algorithm);
  std::vector<const Protocol*> protocols;
  const Latencies latencies = variant.laid->schedule.latencies;
  for (const Protocol* protocol : known_protocols(request_, *transport_))
    if (latencies != Latencies::in_switch || reduces_in_switch(*protocol))
      protocols.push_back(protocol);
  if (!variant.transferred) {
    variant.protocols.clear();
    const Topology& topology = machine_of(algorithm).machine->topology;
    for (auto& transfers : transfers_of(*variant.laid, topology, *transport_, protocols))
      variant.protocols.push_back({nullptr, {}, std::move(transfers)});
  }
  for (std::size_t p = 0; p < protocols.size(); ++p) {
    variant.protocols[p].protocol = protocols[p];
    variant.protocols[p].hop = hop_of(*protocols[p], latencies, request_.group.nodes());
  }
  variant.priced = variant.transferred = true;
  return variant;
}

const CollectiveCurve::Choice& CollectiveCurve::choice(Bytes size) {
  const auto known = choices_.find(size);
  if (known != choices_.end()) return known->second;
  const Chosen run = chosen_for(request_, *transport_);
  Choice choice;
  for (const std::string& algorithm : run.costed) choice.costed.push_back(&variant(algorithm));
  // The name of the choice is that of the algorithm that runs, which is the first of those priced.
  if (!run.algorithm.empty()) choice.algorithm = choice.costed.front()->first;
  return choices_.emplace(size, std::move(choice)).first->second;
}

std::optional<CollectiveCurve::Forecast> CollectiveCurve::cheapest(Variants::value_type& costed) {
  const std::string_view bound = bound_protocol(request_, *transport_);
  const double scale = request_.size / reference_size;
  const Variant& of = priced(costed);
  std::optional<Forecast> best;
  for (const Lowered& lowered : of.protocols) {
    const CommSchedule& schedule = of.laid->schedule;
    if (!offered(*lowered.protocol, request_, schedule.latencies, bound)) continue;
    const Duration time = time_of(schedule, lowered.transfers, scale, lowered.hop, *transport_,
                                  *lowered.protocol, of.laid->placement);
    if (!best || time < best->time) best = {time, costed.first, lowered.protocol->name};
  }
  return best;
}

CollectiveCurve::Forecast CollectiveCurve::forecast(Bytes size) {
  check_protocol(request_, *transport_);
  request_.size = size;
  std::optional<Forecast> best;
  const Choice& run = choice(size);
  for (Variants::value_type* costed : run.costed) {
    const auto by = cheapest(*costed);
    if (by && (!best || by->time < best->time)) best = by;
  }
  check_found(best.has_value(), request_);
  if (!run.algorithm.empty()) best->algorithm = run.algorithm;
  return *best;
}

std::optional<Rival> CollectiveCurve::rival(Bytes size) {
  request_.size = size;
  const auto rival = rival_of(request_, *transport_);
  if (!rival) return std::nullopt;
  const auto by = cheapest(variant(rival->algorithm));
  if (!by) return std::nullopt;
  return Rival{rival->algorithm, std::string(by->protocol), by->time, rival->at_tip};
}

}  // namespace lambcast
