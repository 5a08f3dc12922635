#include "topologies/fabric.h"

#include <catch2/catch.hpp>

#include "sim/collectives/algorithm_cases.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/stand_in.h"
#include "sim/network/plain_search.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

FabricSpec fabric(FabricKind kind, int nodes_per_leaf, double oversubscription) {
  FabricSpec spec;
  spec.kind = kind;
  spec.nodes_per_leaf = nodes_per_leaf;
  spec.oversubscription.value = oversubscription;
  spec.routers_per_group = 2;
  spec.dimensions = {2, 2, 2};
  return spec;
}

NodeSpec node_of(int gpus, int nics, bool pcie_peers = false) {
  return {gpus,           nics,           Bandwidth(40e9), pcie_peers, Bandwidth(30e9),
          Bandwidth(1e9), Bandwidth(10e9)};
}

TEST_CASE("fabrics: routes equal those of a search over the whole machine") {
  for (const FabricSpec& spec :
       {fabric(FabricKind::single_switch, 0, 1), fabric(FabricKind::fat_tree, 2, 1),
        fabric(FabricKind::fat_tree, 3, 2), fabric(FabricKind::rail_optimised, 2, 1),
        fabric(FabricKind::rail_optimised, 4, 4), fabric(FabricKind::torus, 0, 1),
        fabric(FabricKind::dragonfly, 1, 2)}) {
    const auto machine = build_machine(node_of(2, 2), 8, make_fabric(spec));
    Router router(machine->topology);
    for (std::size_t from = 0; from < machine->nic.size(); ++from) {
      for (std::size_t to = 0; to < machine->nic.size(); ++to) {
        INFO("fabric " << static_cast<int>(spec.kind) << ", NIC " << from << " to " << to);
        std::vector<LinkId> route;
        router.append_route(machine->nic[from], machine->nic[to], machine->port[to], route);
        CHECK(route == plain_route(machine->topology, machine->nic[from], machine->nic[to],
                                   machine->port[to]));
      }
    }
  }
}

TEST_CASE("fabrics: a full leaf represents all leaves, at any load of its uplinks") {
  const HopLatency hop{Duration(), Duration::microseconds(3), Duration::microseconds(14)};
  const Transport transport{
      {{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
  int folded_cases = 0;
  for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
    for (const double oversubscription : {1., 2., 4.}) {
      for (const ProcessGroup& group :
           {ProcessGroup{16, 2}, ProcessGroup{8, 1, 2, 1, 2}, ProcessGroup{8, 2, 1, 2}}) {
        const NodeSpec node = node_of(group.slots(), 2, true);
        const FabricSpec spec = fabric(kind, 4, oversubscription);
        const int nodes = group.node_span();
        const auto plan = [&](const AlgorithmCase& c, int alike) {
          Machines machines(node, nodes, make_fabric(spec), alike);
          return plan_collective(
              {c.op, Bytes(32e6), group, DecisionRules::nccl, c.algorithm, "", false}, machines,
              transport);
        };
        for (const AlgorithmCase& c : algorithm_cases(group)) {
          INFO(c.algorithm << " on fabric " << static_cast<int>(kind) << ", " << oversubscription
                           << ":1, " << group.ranks << " ranks, node stride " << group.node_stride);
          const Collective full = plan(c, 0), folded = plan(c, nodes_alike(spec, nodes));
          CHECK_FALSE(full.machine->folded);
          folded_cases += folded.machine->folded ? 1 : 0;
          CHECK(folded.machine->folded ==
                (parts_written(c.algorithm, group, nodes_alike(spec, nodes)) > 0));
          CHECK(folded.time.s() == Approx(full.time.s()).epsilon(1e-8));
          CHECK(simulate(folded, NetworkModel::flow).s() ==
                Approx(simulate(full, NetworkModel::flow).s()).epsilon(1e-8));
          CHECK(folded.traffic.sent_per_rank.value() == Approx(full.traffic.sent_per_rank.value()));
          CHECK(folded.traffic.network_sent_per_node.value() ==
                Approx(full.traffic.network_sent_per_node.value()));
        }
      }
    }
  }
  CHECK(folded_cases > 100);
}

TEST_CASE(
    "fabrics: nodes in different leaves count as being in adjacent leaves, and no more are "
    "written") {
  const HopLatency hop{Duration(), Duration::microseconds(3), Duration::microseconds(14)};
  const Transport transport{
      {{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
  for (const FabricSpec& spec :
       {fabric(FabricKind::fat_tree, 4, 4), fabric(FabricKind::rail_optimised, 4, 2),
        fabric(FabricKind::single_switch, 0, 1)}) {
    for (const ProcessGroup& group :
         {ProcessGroup{2, 1, 1, 24, 2}, ProcessGroup{8, 2, 1, 12}, ProcessGroup{5, 1, 2, 8, 2}}) {
      const int nodes = group.node_span(), alike = nodes_alike(spec, nodes);
      const auto plan = [&](const AlgorithmCase& c, bool expand) {
        Machines machines(node_of(group.slots(), 2, true), nodes, make_fabric(spec), alike);
        return plan_collective(
            {c.op, Bytes(32e6), group, DecisionRules::nccl, c.algorithm, "", expand}, machines,
            transport);
      };
      for (const AlgorithmCase& c : algorithm_cases(group)) {
        INFO(c.algorithm << ' ' << name_of(c.op) << " on fabric " << static_cast<int>(spec.kind)
                         << ", " << group.ranks << " ranks, node stride " << group.node_stride);
        const Collective whole = plan(c, true), near = plan(c, false);
        CHECK(whole.machine->written == nodes);
        CHECK(near.machine->written <= group.nodes() * alike);
        CHECK(near.time.s() == Approx(whole.time.s()).epsilon(1e-8));
        CHECK(simulate(near, NetworkModel::flow).s() ==
              Approx(simulate(whole, NetworkModel::flow).s()).epsilon(1e-8));
        CHECK(near.traffic.network_sent_per_node.value() ==
              Approx(whole.traffic.network_sent_per_node.value()));
      }
    }
  }
}

// Fabrics with several leaves of several nodes. For trees, two kinds of leaves represent all, or
// several kinds do, or none.
TEST_CASE("fabrics: trees are written at the busiest leaves of each kind") {
  const HopLatency hop{Duration(), Duration::microseconds(3), Duration::microseconds(14)};
  Transport transport{
      {{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
  transport.protocols[0].in_switch = InSwitch{hop, 1};
  int folded_cases = 0, alike_under_sharing = 0;
  for (const auto& [leaf, leaves, pcie, node_cap] :
       {std::tuple{1, 7, false, 0.}, std::tuple{2, 9, false, 0.}, std::tuple{4, 8, false, 0.},
        std::tuple{4, 8, true, 0.}, std::tuple{8, 5, true, 0.4e9}, std::tuple{3, 16, false, 0.4e9},
        std::tuple{5, 12, false, 0.}, std::tuple{12, 4, true, 0.}, std::tuple{6, 3, false, 0.},
        std::tuple{24, 9, false, 0.}, std::tuple{22, 16, true, 0.}}) {
    transport.protocols[0].node_cap = Bandwidth(node_cap);
    for (const FabricKind kind : {FabricKind::fat_tree, FabricKind::rail_optimised}) {
      for (const double oversubscription : {1., 4.}) {
        for (const ProcessGroup& shape :
             {ProcessGroup{2, 2}, ProcessGroup{1, 1, 2, 1, 2}, ProcessGroup{2, 2, 1, leaf}}) {
          ProcessGroup group = shape;
          group.ranks *= leaf * leaves / group.node_stride;
          const FabricSpec spec = fabric(kind, leaf, oversubscription);
          const int nodes = group.node_span(), alike = nodes_alike(spec, nodes);
          for (const char* algorithm : {"tree", "nvls_tree"}) {
            if (!supports(algorithm, Op::all_reduce, group)) continue;
            INFO(algorithm << " on fabric " << static_cast<int>(kind) << ", " << oversubscription
                           << ":1, " << leaves << " leaves of " << leaf << ", " << group.per_node
                           << " a node");
            const auto plan = [&](int parts) {
              Machines machines(node_of(group.slots(), 2, pcie), nodes, make_fabric(spec), parts);
              return plan_collective(
                  {Op::all_reduce, Bytes(32e6), group, DecisionRules::nccl, algorithm, "", false},
                  machines, transport);
            };
            const Collective full = plan(0), folded = plan(alike);
            CHECK_FALSE(full.machine->folded);
            const int parts = parts_written(algorithm, group, alike);
            CHECK(folded.machine->folded == (parts > 0));
            if (parts == 0) continue;
            ++folded_cases;
            // At most one leaf for each direction of an uplink and two for the busiest nodes are
            // written.
            CHECK(folded.machine->written <= std::min(parts, 4) * alike);
            CHECK(folded.time == full.time);
            CHECK(folded.traffic.network_sent_per_node == full.traffic.network_sent_per_node);
            // The two are compared only if flows share links equally. Otherwise the rate that flows
            // inside a node leave for a flow between nodes depends on both ends of that flow.
            if (shares_are_unlike(full)) continue;
            ++alike_under_sharing;
            CHECK(simulate(folded, NetworkModel::flow).s() ==
                  Approx(simulate(full, NetworkModel::flow).s()).epsilon(1e-8));
          }
        }
      }
    }
  }
  CHECK(folded_cases > 60);
  CHECK(alike_under_sharing > 30);
}

// Machines with a partly filled last leaf or node, and with strides that divide the leaf or do not.
TEST_CASE("fabrics: partly filled leaves are folded by kind, in either model") {
  const HopLatency hop{Duration(), Duration::microseconds(3), Duration::microseconds(14)};
  Transport transport{
      {{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
  int folded_cases = 0, bounded_cases = 0;
  for (const auto& [kind, leaf, oversubscription] :
       {std::tuple{FabricKind::fat_tree, 4, 1.}, std::tuple{FabricKind::fat_tree, 3, 2.},
        std::tuple{FabricKind::fat_tree, 5, 7.}, std::tuple{FabricKind::rail_optimised, 4, 2.},
        std::tuple{FabricKind::rail_optimised, 3, 1.},
        std::tuple{FabricKind::single_switch, 0, 1.}}) {
    for (const ProcessGroup& group :
         {ProcessGroup{18, 2}, ProcessGroup{9, 1, 2, 1, 2}, ProcessGroup{10, 2, 1, 2},
          ProcessGroup{14, 2}, ProcessGroup{17, 2}, ProcessGroup{37, 4, 1, 1, 2},
          ProcessGroup{11, 4, 1, 3}, ProcessGroup{7, 3, 2, 1, 2}, ProcessGroup{74, 2}}) {
      for (const auto& [nics, pcie, pxn, efficiency, nic_rate, node_cap] :
           {std::tuple{1, true, false, 1., 1e9, 0.}, std::tuple{2, false, true, 1., 1e9, 0.4e9},
            std::tuple{3, false, false, 0.7, 1e9, 0.}, std::tuple{1, true, false, 0.6, 9e11, 0.}}) {
        transport.pxn = pxn;
        transport.all_to_all_efficiency = efficiency;
        transport.protocols[0].node_cap = Bandwidth(node_cap);
        const FabricSpec spec = fabric(kind, leaf, oversubscription);
        const int nodes = group.node_span(), alike = nodes_alike(spec, nodes);
        const auto plan = [&](const AlgorithmCase& c, int parts) {
          NodeSpec node = node_of(group.slots(), nics, pcie);
          node.nic = Bandwidth(nic_rate);
          Machines machines(node, nodes, make_fabric(spec), parts);
          return plan_collective(
              {c.op, Bytes(32e9), group, DecisionRules::nccl, c.algorithm, "", false}, machines,
              transport);
        };
        for (const AlgorithmCase& c : algorithm_cases(group)) {
          if (parts_written(c.algorithm, group, alike) == 0) continue;
          INFO(c.algorithm << " on fabric " << static_cast<int>(kind) << ", leaves of " << leaf
                           << ", " << oversubscription << ":1, " << group.ranks << " ranks, "
                           << group.per_node << " a node, node stride " << group.node_stride << ", "
                           << nics << " NICs, pxn " << pxn);
          const Collective full = plan(c, 0), folded = plan(c, alike);
          folded_cases += folded.machine->folded ? 1 : 0;
          CHECK(folded.time.s() == Approx(full.time.s()).epsilon(1e-9));
          CHECK(folded.traffic.sent_per_rank.value() ==
                Approx(full.traffic.sent_per_rank.value()).epsilon(1e-9));
          CHECK(folded.traffic.network_sent_per_node.value() ==
                Approx(full.traffic.network_sent_per_node.value()).epsilon(1e-9));
          // As for full leaves, the rate that flows inside a node leave to a tree's edge depends on
          // both ends of the edge, so such trees are not compared.
          if (c.algorithm == "tree" && shares_are_unlike(full)) continue;
          const double exact = simulate(full, NetworkModel::flow).s();
          const double flow = simulate(folded, NetworkModel::flow).s();
          if (const auto by = approximation_of(folded, NetworkModel::flow)) {
            ++bounded_cases;
            CHECK(exact <= flow * by->high * (1 + 1e-9));
            CHECK(exact >= flow * by->low * (1 - 1e-9));
          } else {
            CHECK(flow == Approx(exact).epsilon(1e-9));
          }
        }
      }
    }
  }
  CHECK(folded_cases > 300);
  CHECK(bounded_cases > 10);
}

TEST_CASE("fabrics: an interpolated time states its uncertainty") {
  const HopLatency hop{Duration(), Duration::microseconds(3), Duration::microseconds(14)};
  const Transport transport{
      {{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
  struct Case {
    const char* algorithm;
    Op op;
    ProcessGroup group;
    FabricSpec on;
  };
  const FabricSpec tree = fabric(FabricKind::fat_tree, 4, 4), one{};
  for (const Case& c : {Case{"pairwise", Op::all_to_all, {22, 2}, tree},
                        Case{"pairwise", Op::all_to_all, {37, 2}, tree},
                        Case{"pairwise", Op::all_to_all, {37, 4}, one},
                        Case{"bruck", Op::all_gather, {42, 2}, tree},
                        Case{"neighbor_exchange", Op::all_gather, {42, 2}, tree},
                        Case{"ring", Op::all_reduce, {37, 4}, one},
                        Case{"recursive_doubling", Op::all_reduce, {32766, 3}, one}}) {
    INFO(c.algorithm << " over " << c.group.ranks << " ranks");
    const int nodes = c.group.node_span(), alike = nodes_alike(c.on, nodes);
    Machines machines(node_of(c.group.per_node, 1), nodes, make_fabric(c.on), alike);
    const CollectiveRequest request{c.op,        Bytes(32e6), c.group, DecisionRules::nccl,
                                    c.algorithm, "",          false};
    const auto groups =
        stand_ins(c.algorithm, c.group, alike, [](const ProcessGroup&) { return true; });
    REQUIRE(groups);
    const Collective exact = plan_collective(request, machines, transport);
    const Collective planned = plan_by(*groups, request, machines, transport);
    CHECK_FALSE(exact.approximation);
    REQUIRE(planned.approximation);
    const double ratio = exact.time / planned.time;
    CHECK(planned.approximation->low <= ratio);
    CHECK(ratio <= planned.approximation->high);
    CHECK(planned.approximation->high < 1.6);
    CHECK(simulate(planned, NetworkModel::flow).s() == Approx(planned.time.s()).epsilon(0.01));
  }
  // A torus has no equal parts.
  CHECK_FALSE(stand_ins("pairwise", {22, 2}, 0, [](const ProcessGroup&) { return true; }));
}

TEST_CASE("fabrics: if nodes are not alike, none represents others") {
  const FabricSpec tree = fabric(FabricKind::fat_tree, 4, 2);
  CHECK(nodes_alike(tree, 8) == 4);
  CHECK(nodes_alike(tree, 9) == 4);  // two full leaves and a part of one
  CHECK(nodes_alike(tree, 3) == 1);  // all on one leaf
  CHECK(nodes_alike(fabric(FabricKind::rail_optimised, 4, 1), 3) == 0);
  CHECK(nodes_alike(fabric(FabricKind::torus, 0, 1), 8) == 0);
  CHECK(nodes_alike(fabric(FabricKind::dragonfly, 1, 1), 8) == 0);
  CHECK(nodes_alike(fabric(FabricKind::single_switch, 0, 1), 7) == 1);
  // These groups do not fill leaves.
  CHECK(parts_written("ring", {16, 2}, 4) == 1);
  CHECK(parts_written("ring", {12, 2}, 4) == 1);
  CHECK(parts_written("pairwise", {12, 2}, 4) == 0);
  CHECK(parts_written("linear", {11, 2}, 4) == 1);
  CHECK(parts_written("ring", {11, 2}, 4) == 0);
  CHECK(parts_written("ring", {8, 2, 1, 3}, 4) == 0);
  CHECK(parts_written("ring", {16, 2}, 0) == 0);
  // For trees, two mirrored leaves represent any number of leaves. Fewer than three leaves are all
  // written.
  CHECK(parts_written("tree", {1 << 20, 8}, 32) == 2);
  CHECK(parts_written("nvls_tree", {1 << 20, 8}, 4) == 2);
  CHECK(parts_written("tree", {16, 2}, 4) == 0);
}

TEST_CASE("fabrics: among many kinds of leaves, those with the busiest uplinks and nodes suffice") {
  const HopLatency hop{Duration(), Duration::microseconds(3), Duration::microseconds(14)};
  const Transport transport{
      {{"simple", hop, hop, 1.0, Bytes(1e18)}}, Duration(), Bandwidth(), 1, Endpoint::gpu};
  const int leaf = 384, leaves = 341;
  const ProcessGroup group{8 * leaf * leaves, 8};
  Machines machines(node_of(8, 8, false), leaf * leaves,
                    make_fabric(fabric(FabricKind::fat_tree, leaf, 7)), leaf);
  const Collective planned =
      plan_collective({Op::all_reduce, Bytes(32e6), group, DecisionRules::nccl, "tree", "", false},
                      machines, transport);
  CHECK(parts_written("tree", group, leaf) == 19);
  CHECK(planned.machine->written == 2 * leaf);
}

TEST_CASE("fabrics: a key that a single switch does not have is refused by name") {
  for (const char* key : {"fabric.oversubscription", "fabric.nodes_per_leaf"})
    CHECK_THROWS_WITH(
        load_cluster("commodity-10gbe", {{key, "2"}}),
        Catch::Contains("applies to several switches") && Catch::Contains("fat-tree"));
}

}  // namespace
}  // namespace lambcast
