// Folded programs take as long as the full ones.
#include "sim/engine/fold.h"

#include <catch2/catch.hpp>
#include <map>
#include <random>

#include "sim/engine/engine.h"

namespace lambcast {
namespace {

constexpr int ports = 4, spines = 2;

// Nodes under leaves with 4 ports each, joined by two spines: one link in each direction between a
// node and its leaf, and between a leaf and each spine.
struct Tree {
  int nodes;
  std::shared_ptr<const Topology> topology;
  LinkId out(int node) const { return static_cast<LinkId>(2 * node); }
  LinkId up(int leaf, int spine) const {
    return static_cast<LinkId>(2 * nodes + 2 * (leaf * spines + spine));
  }
  std::vector<LinkId> route(int from, int to) const {
    std::vector<LinkId> links{out(from)};
    if (from / ports != to / ports) {
      links.push_back(up(from / ports, to % spines));
      links.push_back(up(to / ports, to % spines) + 1);
    }
    links.push_back(out(to) + 1);
    return links;
  }
};

Tree tree_of(int nodes) {
  Topology topology;
  for (int i = 0; i < 2; ++i) topology.add_vertex({VertexKind::fabric});
  for (int i = 0; i < nodes; ++i) topology.add_duplex(0, 1, Bandwidth(1e9), LinkKind::network);
  for (int i = 0; i < nodes / ports * spines; ++i)
    topology.add_duplex(0, 1, Bandwidth(1.5e9), LinkKind::network);
  return {nodes, std::make_shared<const Topology>(std::move(topology))};
}

using Random = std::mt19937;
int below(Random& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

// Returns a set in which every node sends to the node `shift` places after it, or some nodes send
// to random nodes.
FlowSet random_set(const Tree& tree, bool regular, Random& random) {
  const bool shifts = regular || below(random, 3) > 0;
  const int shift = 1 + below(random, tree.nodes - 1);
  const Flow one{Bytes(1e6 * (1 + below(random, 50))), Bandwidth(below(random, 4) == 0 ? 3e8 : 0),
                 static_cast<std::uint32_t>(1 + below(random, 2))};
  std::vector<std::vector<LinkId>> routes;
  std::vector<Flow> flows;
  for (int node = 0; node < tree.nodes; ++node) {
    const int to = shifts ? node + shift : node + 1 + below(random, tree.nodes - 1);
    if (!shifts && below(random, 2) == 0) continue;
    routes.push_back(tree.route(node, to % tree.nodes));
    flows.push_back(one);
    if (!regular && below(random, 8) == 0) flows.back().bytes = Bytes(5e5);
  }
  return {routes, flows};
}

std::vector<std::shared_ptr<const CommProgram>> random_programs(const Tree& tree, Random& random) {
  const bool regular = below(random, 3) > 0;
  std::vector<std::shared_ptr<const FlowSet>> sets;
  for (int i = 0; i < 4; ++i)
    sets.push_back(std::make_shared<const FlowSet>(random_set(tree, regular, random)));
  std::vector<std::shared_ptr<const CommProgram>> programs;
  for (int i = 2 + below(random, 4); i > 0; --i) {
    CommProgram program;
    program.fixed = Duration::seconds(1e-3 * below(random, 30));
    program.expand = below(random, 2) == 0;
    for (int phase = 1 + below(random, 4); phase > 0; --phase)
      program.phases.push_back({sets[static_cast<std::size_t>(below(random, 4))],
                                Duration::seconds(1e-5 * below(random, 3)), 1 + below(random, 3),
                                0.5 * below(random, 2)});
    programs.push_back(std::make_shared<const CommProgram>(program));
  }
  return programs;
}

Timeline run_together(const std::vector<std::shared_ptr<const CommProgram>>& programs,
                      const Topology& topology) {
  TaskGraph graph;
  for (const auto& program : programs)
    graph.add_communication("program", Category::gradient_comm, graph.add_resource("stream"),
                            program.get());
  return run(graph, *make_network(NetworkModel::flow, topology));
}

std::size_t flows_in(const std::vector<std::shared_ptr<const CommProgram>>& programs) {
  std::size_t flows = 0;
  for (const auto& program : programs)
    for (const CommPhase& phase : program->phases) flows += phase.flows->size();
  return flows;
}

TEST_CASE("fold: concurrent programs end at the times of their full flows") {
  std::size_t written = 0, folded_flows = 0;
  for (unsigned seed = 0; seed < 400; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Tree tree = tree_of(ports * (2 + below(random, 3)));
    const auto programs = random_programs(tree, random);
    const FoldedPrograms folded = fold(programs, tree.topology);
    const Timeline plain = run_together(programs, *tree.topology);
    const Timeline alike = run_together(folded.programs, *folded.topology);
    for (std::size_t i = 0; i < programs.size(); ++i)
      CHECK(alike.spans[i].end.since_start().s() ==
            Approx(plain.spans[i].end.since_start().s()).epsilon(1e-9));
    written += flows_in(programs);
    folded_flows += flows_in(folded.programs);
  }
  CHECK(folded_flows * 2 < written);
}

// Changes all bytes by one factor, and with `apart` the bytes of single flows.
std::vector<std::shared_ptr<const CommProgram>> with_other_bytes(
    const std::vector<std::shared_ptr<const CommProgram>>& programs, bool apart, Random& random) {
  std::map<const FlowSet*, std::shared_ptr<const FlowSet>> sets;
  std::vector<std::shared_ptr<const CommProgram>> others;
  for (const auto& program : programs) {
    CommProgram other = *program;
    for (CommPhase& phase : other.phases) {
      std::shared_ptr<const FlowSet>& set = sets[phase.flows.get()];
      if (set == nullptr) {
        FlowSet changed = *phase.flows;
        for (Flow& flow : changed.flows)
          flow.bytes = flow.bytes * (apart && below(random, 4) == 0 ? 2.5 : 1.7);
        set = std::make_shared<const FlowSet>(std::move(changed));
      }
      phase.flows = set;
    }
    others.push_back(std::make_shared<const CommProgram>(std::move(other)));
  }
  return others;
}

TEST_CASE("fold: known classes serve the same paths with other bytes") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    const Tree tree = tree_of(ports * (2 + below(random, 3)));
    const auto programs = random_programs(tree, random);
    KnownFolds known;
    fold(programs, tree.topology, &known);
    const auto others = with_other_bytes(programs, below(random, 2) == 0, random);
    const FoldedPrograms kept = fold(others, tree.topology, &known);
    const FoldedPrograms fresh = fold(others, tree.topology);
    CHECK(flows_in(kept.programs) == flows_in(fresh.programs));
    CHECK(kept.topology->links().size() == fresh.topology->links().size());
    const Timeline by_kept = run_together(kept.programs, *kept.topology);
    const Timeline by_fresh = run_together(fresh.programs, *fresh.topology);
    for (std::size_t i = 0; i < programs.size(); ++i)
      CHECK(by_kept.spans[i].end == by_fresh.spans[i].end);
  }
}

TEST_CASE("fold: shifts by any number of nodes under one leaf become one flow each") {
  const Tree tree = tree_of(2 * ports);
  std::vector<std::shared_ptr<const CommProgram>> programs{nullptr};
  for (int shift = 1; shift < ports; ++shift) {
    std::vector<std::vector<LinkId>> routes;
    for (int node = 0; node < ports; ++node)
      routes.push_back(tree.route(node, (node + shift) % ports));
    const FlowSet set(routes, std::vector<Flow>(ports, {Bytes(1e6 * shift)}));
    programs.push_back(std::make_shared<const CommProgram>(
        CommProgram{{}, {{std::make_shared<const FlowSet>(set), {}, 1, 0}}, false}));
  }
  const FoldedPrograms folded = fold(programs, tree.topology);
  CHECK(folded.programs.front() == nullptr);
  // The same flows cross the links up and down, so that one class of links is kept.
  REQUIRE(folded.topology->links().size() == 1);
  CHECK(folded.topology->capacity(0).value() == Approx(ports * 1e9));
  for (std::size_t i = 1; i < programs.size(); ++i) {
    const FlowSet& set = *folded.programs[i]->phases.front().flows;
    REQUIRE(set.size() == 1);
    CHECK(set.flows.front().weight == ports);
    CHECK(set.flows.front().bytes.value() == Approx(ports * 1e6 * static_cast<double>(i)));
  }
}

// Each link of a ring of switches is the first hop of one flow and the second hop of another.
TEST_CASE("fold: routes that cross two links of one class are not folded") {
  Topology ring;
  for (int i = 0; i < 4; ++i) ring.add_vertex({VertexKind::fabric});
  for (VertexId i = 0; i < 4; ++i) ring.add_link(i, (i + 1) % 4, Bandwidth(1e9), LinkKind::network);
  std::vector<std::vector<LinkId>> routes;
  for (LinkId i = 0; i < 4; ++i) routes.push_back({i, (i + 1) % 4});
  const auto set = std::make_shared<const FlowSet>(routes, std::vector<Flow>(4, {Bytes(1e6)}));
  const auto program =
      std::make_shared<const CommProgram>(CommProgram{{}, {{set, {}, 1, 0}}, false});
  const auto topology = std::make_shared<const Topology>(ring);
  const FoldedPrograms folded = fold({program, program}, topology);
  CHECK(folded.topology == topology);
  CHECK(folded.programs.front() == program);
}

}  // namespace
}  // namespace lambcast
