// Groups that are not whole nodes, compared with closed forms and with the same groups run as
// separate programs on one network.
#include "sim/collectives/process_group.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <set>
#include <thread>
#include <vector>

#include "sim/collectives/algorithms.h"
#include "sim/collectives/collective.h"
#include "sim/engine/engine.h"
#include "sim/network/fair_share.h"

namespace lambcast {
namespace {

constexpr double nic_rate = 1e9, gpu_rate = 40e9;
const Duration hop_time = Duration::microseconds(5);

Transport one_protocol() {
  const HopLatency hop{Duration(), hop_time, hop_time};
  return {{{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
}

NodeSpec node_of(int gpus, int nics) {
  return {gpus,           nics, Bandwidth(gpu_rate), false, Bandwidth(1e12), Bandwidth(nic_rate),
          Bandwidth(1e10)};
}

Machines machines(int gpus, int nics, int nodes) {
  return {node_of(gpus, nics), nodes, single_switch, 1};
}

Collective plan(const ProcessGroup& group, const char* algorithm, Op op, double size, int nics,
                bool expand = false) {
  Machines on = machines(group.slots(), nics, group.node_span());
  return plan_collective({op, Bytes(size), group, DecisionRules::nccl, algorithm, "", expand}, on,
                         one_protocol());
}

TEST_CASE("process group: siblings share no slot and fill their blocks") {
  for (const ProcessGroup& group :
       {ProcessGroup{16, 8}, ProcessGroup{4, 1, 8, 1, 8}, ProcessGroup{8, 2, 4, 1, 4},
        ProcessGroup{8, 4, 1, 1, 2}, ProcessGroup{8, 2, 2, 3, 4}, ProcessGroup{6, 1, 1, 2, 4}}) {
    std::set<int> slots;
    for (int sibling = 0; sibling < group.siblings; ++sibling)
      for (int i = 0; i < group.per_node; ++i) {
        CHECK(slots.insert(group.slot_of(i, sibling)).second);
        CHECK(group.slot_of(i + group.per_node, sibling) == group.slot_of(i, sibling));
      }
    CHECK(*slots.begin() == 0);
    CHECK(*slots.rbegin() == group.slots() - 1);
    CHECK(static_cast<int>(slots.size()) == group.slots());
  }
  CHECK(ProcessGroup{6, 1, 1, 2, 4}.node_span() == 12);
  // A group without siblings leaves slots to others.
  CHECK(ProcessGroup{8, 2, 4}.slots() == 8);
  CHECK(ProcessGroup{8, 2, 4}.slot_of(3) == 4);
}

TEST_CASE("process group: eight groups of one GPU per node share the NICs of the node") {
  // A ring over n nodes: 2(n-1) rounds of S/n over the NIC of its member. k groups at one NIC of
  // rate B have B/k each: 2(n-1)(alpha + k S/(nB)).
  const int n = 4;
  const double size = 64e6;
  const auto time = [&](int siblings, int nics) {
    return plan({n, 1, 8, 1, siblings}, "ring", Op::all_reduce, size, nics).time.s();
  };
  for (const auto& [nics, at_one] : {std::pair{8, 1}, {4, 2}, {2, 4}, {1, 8}})
    CHECK(time(8, nics) == Approx(2 * (n - 1) * (hop_time.s() + at_one * size / n / nic_rate)));
  CHECK(time(8, 8) == time(1, 8));
  CHECK(time(1, 1) == time(1, 8));
}

TEST_CASE("process group: groups in one node share its NICs, not each other's links") {
  const double size = 64e6;
  const auto time = [&](const ProcessGroup& group, int nics) {
    return plan(group, "ring", Op::all_reduce, size, nics).time.s();
  };
  // Inside a node of 8: rings of p ranks have 2(p-1) rounds of S/p over the GPUs' own links.
  for (const auto& [p, siblings] : {std::pair{2, 4}, {4, 2}, {8, 1}}) {
    const double alone = 2 * (p - 1) * (hop_time.s() + size / p / gpu_rate);
    CHECK(time({p, p, 1, 1, siblings}, 1) == Approx(alone));
    CHECK(time({p, p, siblings, 1, siblings}, 1) == Approx(alone));
  }
  // Rings over 2 nodes, n = 8 ranks, cross the network once per rail and round. Two groups of four
  // adjacent slots use half of the NICs each; interleaved groups both use all NICs and get half of
  // each.
  for (const int stride : {1, 2}) {
    const auto groups = [&](int siblings, int nics) {
      return time({8, 4, stride, 1, siblings}, nics);
    };
    for (const int nics : {1, 2, 4}) {
      INFO("stride " << stride << ", " << nics << " NICs");
      CHECK(groups(2, nics) == Approx(14 * (hop_time.s() + size / 8 * 2 / (nics * nic_rate))));
    }
  }
}

TEST_CASE("process group: traffic per node includes that of siblings") {
  const Traffic alone = plan({4, 1, 8, 1, 1}, "ring", Op::all_reduce, 8e6, 8).traffic;
  const Traffic eight = plan({4, 1, 8, 1, 8}, "ring", Op::all_reduce, 8e6, 8).traffic;
  CHECK(alone.network_sent_per_node.value() == Approx(2 * 3. / 4 * 8e6));
  CHECK(eight.network_sent_per_node.value() == Approx(8 * 2 * 3. / 4 * 8e6));
  CHECK(eight.sent_per_rank == alone.sent_per_rank);
}

// Returns when the last sibling ends if all run as separate programs at the same time.
Duration run_concurrently(const ProcessGroup& group, const char* algorithm, Op op, double size,
                          int nics) {
  Machines on = machines(group.slots(), nics, group.node_span());
  Machines::Wired& wired = on.full();
  const Machine& machine = *wired.machine;
  ProcessGroup one = group;
  one.siblings = 1;
  const Transport transport = one_protocol();
  std::vector<CommProgram> programs;
  for (int sibling = 0; sibling < group.siblings; ++sibling) {
    const Place place{0, group.slot_of(0, sibling)};
    LaidOut laid;
    laid.placement = placed(one, machine, place);
    laid.schedule = make_schedule(algorithm, op, Bytes(size), laid.placement);
    laid.routes =
        find_routes(laid.schedule, one, wired.machine, transport.endpoint, wired.router(), place);
    laid.classes = send_classes(laid.schedule, laid.routes, laid.placement, NodeCaps::none);
    const auto transfers =
        transfers_of(laid, machine.topology, transport, {&transport.protocols[0]});
    programs.push_back(
        lower(laid, machine.topology, transfers[0], transport, transport.protocols[0], true));
  }
  TaskGraph graph;
  for (const CommProgram& program : programs)
    graph.add_communication(algorithm, Category::gradient_comm, graph.add_resource("group"),
                            &program);
  const auto network = make_network(NetworkModel::flow, machine.topology);
  return run(graph, *network).end.since_start();
}

TEST_CASE("process group: siblings as one program take as long as separate programs") {
  struct Case {
    const char* algorithm;
    Op op;
  };
  for (const ProcessGroup& group :
       {ProcessGroup{4, 1, 8, 1, 8}, ProcessGroup{8, 2, 4, 1, 4}, ProcessGroup{16, 4, 1, 1, 2},
        ProcessGroup{4, 1, 4, 2, 4}, ProcessGroup{4, 4, 1, 1, 2}}) {
    for (const Case& c :
         {Case{"ring", Op::all_reduce}, Case{"tree", Op::all_reduce},
          Case{"hierarchical", Op::all_reduce}, Case{"halving_doubling", Op::all_reduce},
          Case{"linear", Op::all_to_all}, Case{"pairwise", Op::all_to_all}}) {
      if (!supports(c.algorithm, c.op, group)) continue;
      for (const int nics : {1, group.slots()}) {
        INFO(c.algorithm << " of " << group.ranks << " ranks, " << group.per_node << " per node, "
                         << group.siblings << " siblings on " << nics << " NICs");
        const Collective folded = plan(group, c.algorithm, c.op, 64e6, nics);
        const Collective full = plan(group, c.algorithm, c.op, 64e6, nics, true);
        const double apart = run_concurrently(group, c.algorithm, c.op, 64e6, nics).s();
        CHECK(simulate(full, NetworkModel::flow).s() == Approx(apart).epsilon(1e-8));
        CHECK(simulate(folded, NetworkModel::flow).s() == Approx(apart).epsilon(1e-8));
        CHECK(full.time.s() == Approx(folded.time.s()).epsilon(1e-8));
        // The closed form gives the same if all flows of a round share the same bottleneck.
        const std::string name = c.algorithm;
        if (name == "ring" || name == "pairwise")
          CHECK(folded.time.s() == Approx(apart).epsilon(1e-8));
      }
    }
  }
}

TEST_CASE("routes: more links than are kept at a time give flows the same loads as kept ones") {
  const ProcessGroup group{480, 4, 2, 1, 2};
  Machines on = machines(group.slots(), 3, group.node_span());
  Machines::Wired& wired = on.full();
  Placement placement = placed(group, *wired.machine);
  const auto same = [](const Share& a, const Share& b) {
    return a.each == b.each && a.alone == b.alone && a.flows == b.flows;
  };
  std::vector<Share> by_own;
  for (const bool by_rail : {false, true}) {
    placement.by_rail_of_receiver = by_rail;
    const CommSchedule schedule = make_schedule("linear", Op::all_to_all, Bytes(1e9), placement);
    const Routes routes =
        find_routes(schedule, group, wired.machine, Endpoint::gpu, wired.router());
    const Paths& paths = *routes.at(0);
    CHECK(paths.size() == 2 * 480 * 479);
    CHECK(paths.links().links.size() > most_links_kept);
    const Topology& topology = wired.machine->topology;
    const std::vector<Share> kept = FairShares(topology).of(paths.links(), {}).shares(topology);
    CHECK(std::ranges::equal(paths.shares(), kept, same));
    // Three NICs do not divide eight GPUs equally, so the loads depend on the choice of the NIC.
    if (by_rail)
      CHECK_FALSE(std::ranges::equal(by_own, kept, same));
    else
      by_own = kept;
  }
}

TEST_CASE("routes: threads that request the same links at once find them once") {
  std::atomic<int> found = 0;
  const Paths paths(
      1000,
      [&](LinkLists& lists) {
        ++found;
        for (LinkId link = 0; link < 1000; ++link) lists.add(std::array{link});
      },
      {}, Topology());
  const Paths others = paths.on(Topology());
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i)
      threads.emplace_back([&, i] {
        const LinkLists& links = (i % 2 == 0 ? paths : others).links();
        if (links.of(999).front() != 999) found = -1000;
      });
  }
  CHECK(found == 1);
}

TEST_CASE("routes: threads that request links from one router do not use it at the same time") {
  const ProcessGroup group{64, 8};
  Machines on = machines(8, 8, 8);
  Machines::Wired& wired = on.full();
  const CommSchedule schedule = make_schedule("recursive_doubling", Op::all_reduce, Bytes(1e9),
                                              placed(group, *wired.machine));
  const auto found = [&] {
    return find_routes(schedule, group, wired.machine, Endpoint::gpu, wired.router());
  };
  const Routes alone = found(), together = found();
  REQUIRE(alone.size() > 2);
  for (const auto& paths : alone) CHECK(paths->links().size() == 64);
  {
    std::vector<std::jthread> threads;
    for (const auto& paths : together) threads.emplace_back([&] { paths->links(); });
  }
  for (std::size_t i = 0; i < alone.size(); ++i)
    CHECK(together[i]->links().links == alone[i]->links().links);
}

TEST_CASE("routes: messages by rail leave through the NIC next to their receiver") {
  // The second of two groups that alternate over eight GPUs has slots 1, 3, 5 and 7 of two nodes,
  // next to NICs 0, 1, 1 and 2.
  const ProcessGroup group{8, 4, 2, 1, 2};
  Machines on = machines(8, 3, 2);
  Machines::Wired& wired = on.full();
  const Machine& machine = *wired.machine;
  Placement placement = placed(group, machine);
  placement.by_rail_of_receiver = true;
  const CommSchedule schedule = make_schedule("pairwise", Op::all_to_all, Bytes(8), placement);
  const Routes routes = find_routes(schedule, group, wired.machine, Endpoint::gpu, wired.router());
  for (std::size_t round = 0; round < routes.size(); ++round) {
    const LinkLists& links = routes[round]->links();
    std::size_t flow = 0;
    for (int sibling = 0; sibling < group.siblings; ++sibling)
      for (const Send& send : schedule.send_sets[round])
        for (int i = 0; i < send.count; ++i, ++flow) {
          const int from = group.node_of(send.from + i), to = group.node_of(send.to + i);
          if (from == to) continue;
          const auto beside =
              static_cast<std::size_t>(nic_next_to(machine, group.slot_of(send.to + i, sibling)));
          const VertexId leaves = machine.nic[static_cast<std::size_t>(from) * 3 + beside];
          const VertexId enters = machine.nic[static_cast<std::size_t>(to) * 3 + beside];
          const auto starts_at = [&](VertexId nic) {
            return std::ranges::count_if(links.of(flow), [&](LinkId link) {
              return machine.topology.link(link).from == nic;
            });
          };
          INFO("round " << round << ", rank " << send.from + i << " of sibling " << sibling);
          CHECK(starts_at(leaves) == 1);
          CHECK(starts_at(enters) == 1);
        }
  }
}

}  // namespace
}  // namespace lambcast
