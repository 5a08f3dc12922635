#include "sim/network/network.h"

#include <catch2/catch.hpp>

#include "sim/base/check.h"
#include "sim/network/fair_share.h"
#include "sim/network/flow_network.h"
#include "sim/network/machine.h"
#include "sim/network/plain_search.h"
#include "sim/network/router.h"

namespace lambcast {
namespace {

constexpr double gb = 1e9;

Duration run_alone(Network& network, const FlowSet& flows) {
  std::vector<Ticket> finished;
  network.start(0, flows, 1, SimTime());
  SimTime now;
  while (const auto next = network.next_event()) {
    now = *next;
    network.advance(now, finished);
  }
  REQUIRE(finished == std::vector<Ticket>{0});
  return now.since_start();
}

// Three links in a row: a, b and c.
struct Line {
  Line() {
    for (int i = 0; i < 4; ++i)
      topology.add_vertex({i == 0 || i == 3 ? VertexKind::gpu : VertexKind::bus, 0, i});
    a = topology.add_link(0, 1, Bandwidth(1 * gb), LinkKind::local);
    b = topology.add_link(1, 2, Bandwidth(1 * gb), LinkKind::local);
    c = topology.add_link(2, 3, Bandwidth(2 * gb), LinkKind::local);
  }
  Topology topology;
  LinkId a, b, c;
};

TEST_CASE("flow network: the long flow of a line gets half of each shared link") {
  // One flow over a and b, one over a, one over b, all links 1 GB/s: max-min gives each 0.5 GB/s.
  // Bytes: 1 GB, 1 GB and 0.5 GB. The third ends at 1 s; the first is still limited by a (0.5 GB/s)
  // and ends with the second at 2 s.
  Line line;
  FlowNetwork network(line.topology);
  FlowSet flows{{{line.a, line.b}, {line.a}, {line.b}},
                {{Bytes(1 * gb), {}, 1, 2}, {Bytes(0.5 * gb)}}};
  CHECK(run_alone(network, flows).s() == Approx(2.0).epsilon(1e-12));
}

TEST_CASE("flow network: flows take up the capacity that another flow leaves") {
  // Two flows use c (2 GB/s); one of them shares a (1 GB/s) with a third flow. Link a gives 0.5
  // GB/s to each of its flows, so the flow that uses only c gets 1.5 GB/s.
  Line line;
  FlowNetwork network(line.topology);
  const FlowSet flows{{{line.a, line.c}, {line.a}, {line.c}}, {{Bytes(gb), {}, 1, 3}}};
  network.start(7, flows, 1, SimTime());
  CHECK(network.rate_on(line.c).value() == Approx(2 * gb));
  CHECK(network.rate_on(line.a).value() == Approx(1 * gb));
  CHECK(network.next_event()->since_start().s() == Approx(1 / 1.5));
}

TEST_CASE("flow network: a cap keeps a flow below its share") {
  Line line;
  FlowNetwork network(line.topology);
  const FlowSet capped{{{line.a}}, {{Bytes(gb), Bandwidth(0.1 * gb)}}};
  const FlowSet free{{{line.a}}, {{Bytes(gb)}}};
  network.start(0, capped, 1, SimTime());
  network.start(1, free, 1, SimTime());
  CHECK(network.next_event()->since_start().s() == Approx(1 / 0.9));
  CHECK(network.rate_on(line.a).value() == Approx(gb));
}

TEST_CASE("flow network: a cap limits all parts of a merged flow together") {
  // Three parts would get a third of 1 GB/s each; two of them are capped at 0.3 GB/s together.
  Line line;
  FlowNetwork network(line.topology);
  const FlowSet capped{{{line.a}}, {{Bytes(gb), Bandwidth(0.3 * gb), 2}}};
  const FlowSet free{{{line.a}}, {{Bytes(gb)}}};
  network.start(0, capped, 1, SimTime());
  network.start(1, free, 1, SimTime());
  CHECK(network.next_event()->since_start().s() == Approx(1 / 0.7));
  CHECK(network.rate_on(line.a).value() == Approx(gb));
  for (const auto model : {NetworkModel::analytic, NetworkModel::flow})
    CHECK(run_alone(*make_network(model, line.topology), capped).s() == Approx(1 / 0.3));
}

TEST_CASE("networks: a merged flow behaves like its parts") {
  Line line;
  const FlowSet parts{{{line.a}, {line.a}, {line.a}}, {{Bytes(gb), {}, 1, 3}}};
  const FlowSet merged{{{line.a}, {line.a}}, {{Bytes(2 * gb), {}, 2}, {Bytes(gb)}}};
  for (const auto model : {NetworkModel::analytic, NetworkModel::flow}) {
    CHECK(run_alone(*make_network(model, line.topology), parts) ==
          run_alone(*make_network(model, line.topology), merged));
  }
  CHECK(analytic_time(merged, line.topology).s() == Approx(3.0));
}

TEST_CASE("fair shares: weights apply to paths that come in several pieces") {
  // Weights of 2 + 3 + 1 = 6 share the 1 GB/s of link a: a sixth per unit.
  Line line;
  const std::vector<std::uint32_t> weights{2, 3, 1};
  LinkLists first, second;
  first.add(std::vector<LinkId>{line.a, line.c});
  second.add(std::vector<LinkId>{line.a});
  second.add(std::vector<LinkId>{line.a, line.c});
  FairShares shares(line.topology);
  for (int times = 0; times < 2; ++times) {  // a call leaves no state behind
    const FlowLoads loads = shares.of(
        [&](const FairShares::Take& take) {
          take(first);
          take(second);
        },
        weights);
    const std::vector<Share> of = loads.shares(line.topology);
    REQUIRE(of.size() == 3);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(of[i].each.value() == Approx(weights[i] * gb / 6));
      CHECK(of[i].alone.value() == gb);
      CHECK(of[i].flows == 1);
    }
  }
}

TEST_CASE("networks: empty flows end at once, and no flow is faster than its narrowest link") {
  Line line;
  const FlowSet nothing{{{line.a}}, {{Bytes(0)}}};
  const FlowSet some{{{line.a, line.b, line.c}}, {{Bytes(gb)}}};
  for (const auto model : {NetworkModel::analytic, NetworkModel::flow}) {
    CHECK(run_alone(*make_network(model, line.topology), nothing).ps() == 0);
    CHECK(run_alone(*make_network(model, line.topology), some).s() == Approx(1.0));
  }
}

TEST_CASE("flow network: two sets contend, which the analytic model ignores") {
  Line line;
  const FlowSet set{{{line.a}}, {{Bytes(gb)}}};
  for (const auto model : {NetworkModel::analytic, NetworkModel::flow}) {
    const auto network = make_network(model, line.topology);
    network->start(0, set, 1, SimTime());
    network->start(1, set, 1, SimTime());
    CHECK(network->next_event()->since_start().s() ==
          Approx(model == NetworkModel::flow ? 2.0 : 1.0));
  }
}

TEST_CASE("router: routes equal those of a search over the whole machine") {
  for (const bool pcie_peers : {false, true}) {
    const NodeSpec node{
        4, 2, Bandwidth(gb), pcie_peers, Bandwidth(gb), Bandwidth(gb), Bandwidth(gb)};
    const auto machine = build_machine(node, 3, single_switch);
    const Topology& topology = machine->topology;
    Router router(topology);
    for (VertexId from = 0; from < topology.vertices(); ++from) {
      for (VertexId to = 0; to < topology.vertices(); ++to) {
        const std::vector<LinkId> plain = plain_route(topology, from, to, from + to);
        if (plain.empty()) continue;
        std::vector<LinkId> route;
        router.append_route(from, to, from + to, route);
        CHECK(route == plain);
      }
    }
  }
}

TEST_CASE(
    "router: GPUs do not forward, equal paths are taken in turn, a missing path is an error") {
  const NodeSpec node{4, 2, Bandwidth(gb), false, Bandwidth(gb), Bandwidth(gb), Bandwidth(gb)};
  const auto machine = build_machine(node, 3, single_switch);
  Router router(machine->topology);
  // The path between peers leads over their bus, not over a third GPU.
  std::vector<LinkId> peers;
  router.append_route(machine->gpu[0], machine->gpu[3], 0, peers);
  CHECK(peers.size() == 2);
  // Two parallel switches, the first of them joined by two cables, give 3 paths, which the salt
  // selects.
  Topology diamond;
  for (const VertexKind kind :
       {VertexKind::nic, VertexKind::fabric, VertexKind::fabric, VertexKind::fabric,
        VertexKind::fabric, VertexKind::nic, VertexKind::gpu})
    diamond.add_vertex({kind, 0, 0});
  for (const auto& [from, to] : {std::pair<VertexId, VertexId>{0, 1},
                                 {1, 2},
                                 {1, 3},
                                 {1, 2},
                                 {2, 4},
                                 {3, 4},
                                 {4, 5},
                                 {6, 1}})
    diamond.add_link(from, to, Bandwidth(gb), LinkKind::network);
  Router ways(diamond);
  for (const auto& [salt, second] :
       {std::pair<std::uint32_t, LinkId>{0, 1}, {1, 2}, {2, 3}, {3, 1}}) {
    std::vector<LinkId> route;
    ways.append_route(0, 5, salt, route);
    CHECK(route[1] == second);
    CHECK(route == plain_route(diamond, 0, 5, salt));
  }
  std::vector<LinkId> route;
  CHECK_THROWS_AS(ways.append_route(0, 6, 0, route), InternalError);
}

TEST_CASE("router: endpoints that share one of their switches have separate routes") {
  // There are four switches in a row, 0 to 3; one endpoint is on switches 0 and 1, another on 0 and
  // 3.
  Topology row;
  for (int i = 0; i < 4; ++i) row.add_vertex({VertexKind::fabric, -1, i});
  const VertexId source = row.add_vertex({VertexKind::nic, 0, 0});
  const VertexId first = row.add_vertex({VertexKind::nic, 1, 0});
  const VertexId second = row.add_vertex({VertexKind::nic, 2, 0});
  for (const auto& [a, b] : {std::pair<VertexId, VertexId>{0, 1},
                             {1, 2},
                             {2, 3},
                             {source, 2},
                             {0, first},
                             {1, first},
                             {0, second},
                             {3, second}})
    row.add_duplex(a, b, Bandwidth(gb), LinkKind::network);
  Router router(row);
  for (const VertexId to : {first, second, first}) {
    std::vector<LinkId> route;
    router.append_route(source, to, 0, route);
    CHECK(route.size() == 3);
    CHECK(route == plain_route(row, source, to, 0));
  }
}

TEST_CASE("machine: a node without GPUs or NICs is refused") {
  NodeSpec node{1, 1, Bandwidth(gb), false, Bandwidth(gb), Bandwidth(gb), Bandwidth(gb)};
  CHECK_NOTHROW(build_machine(node, 2, single_switch));
  CHECK_THROWS_AS(build_machine(node, 0, single_switch), InternalError);
  node.gpus = 0;
  CHECK_THROWS_AS(build_machine(node, 2, single_switch), InternalError);
  node.gpus = 1;
  node.nics = 0;
  CHECK_THROWS_AS(build_machine(node, 2, single_switch), InternalError);
}

TEST_CASE("router: equal paths are taken in turn even if there are too many to keep") {
  Topology bundle;
  for (const VertexKind kind :
       {VertexKind::nic, VertexKind::fabric, VertexKind::fabric, VertexKind::nic})
    bundle.add_vertex({kind, 0, 0});
  bundle.add_link(0, 1, Bandwidth(gb), LinkKind::network);
  bundle.add_link(2, 3, Bandwidth(gb), LinkKind::network);
  for (int i = 0; i < 300; ++i) bundle.add_link(1, 2, Bandwidth(gb), LinkKind::network);
  Router router(bundle);
  for (const std::uint32_t salt : {0U, 299U, 300U, 457U}) {
    std::vector<LinkId> route;
    router.append_route(0, 3, salt, route);
    CHECK(route == std::vector<LinkId>{0, 2 + salt % 300, 1});
  }
}

}  // namespace
}  // namespace lambcast
