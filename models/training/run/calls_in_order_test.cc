#include "models/training/run/calls_in_order.h"

#include <catch2/catch.hpp>

#include "sim/engine/engine.h"

namespace lambcast {
namespace {

constexpr Bandwidth rate(1e9);

struct Links {
  Topology topology;
  std::vector<LinkId> ids;

  explicit Links(int count) {
    const VertexId from = topology.add_vertex({}), to = topology.add_vertex({});
    for (int i = 0; i < count; ++i)
      ids.push_back(topology.add_link(from, to, rate, LinkKind::network));
  }
  // Returns the flow of a call that takes `seconds` over one link without contention.
  IssuedFlows over(std::size_t link, double seconds) const {
    const std::vector<std::vector<LinkId>> route{{ids[link]}};
    const FlowSet set(route, {{Bytes(rate.value() * seconds)}});
    return {{set.paths}, set.flows};
  }
};

CommProgram program_of(const CallsInOrder& calls) {
  CommProgram program;
  for (const IssuedFlows& phase : calls.phases()) {
    LinkLists links;
    for (const auto& paths : phase.paths)
      for (std::size_t i = 0; i < paths->size(); ++i) links.add(paths->links().of(i));
    const auto paths = std::make_shared<const Paths>(std::move(links));
    program.phases.push_back({std::make_shared<const FlowSet>(paths, phase.flows), {}, 1, 0});
  }
  return program;
}

// Runs the programs at the same time and returns the time of the first program.
double first_lasts(const std::vector<CommProgram>& programs, const Topology& topology) {
  TaskGraph graph;
  for (const CommProgram& program : programs)
    graph.add_communication("calls", Category::forward, graph.add_resource("rank"), &program);
  const Timeline timeline = run(graph, *make_network(NetworkModel::flow, topology));
  return timeline.spans.front().end.since_start().s();
}

const CallsInOrder::Communicator tensor{{.ranks = 8, .per_node = 8}, {}};
const CallsInOrder::Communicator pipeline{{.ranks = 2, .node_stride = 4}, {}};
const CallsInOrder::Communicator other_stage{{.ranks = 2, .node_stride = 4}, {.node = 4}};

TEST_CASE("calls in order: those of one communicator take the sum of their times") {
  const Links links(2);
  CallsInOrder calls;
  calls.add(tensor, links.over(0, 1), 1);
  calls.add(tensor, links.over(1, 2), 2);
  CHECK(calls.phases().size() == 2);
  CHECK(first_lasts({program_of(calls)}, links.topology) == Approx(3));
}

TEST_CASE("calls in order: those over the same links are one call") {
  const Links links(1);
  CallsInOrder calls;
  for (const double seconds : {1., 2., 4.}) calls.add(tensor, links.over(0, seconds), seconds);
  CHECK(calls.phases().size() == 1);
  CHECK(first_lasts({program_of(calls)}, links.topology) == Approx(7));
}

TEST_CASE("calls in order: those of different communicators take the time of the longest") {
  const Links links(4);
  CallsInOrder calls;
  calls.add(tensor, links.over(0, 1), 1);
  calls.add(pipeline, links.over(2, 2.5), 2.5);
  calls.add(tensor, links.over(1, 2), 2);
  calls.add(other_stage, links.over(3, 0.5), 0.5);
  CHECK(first_lasts({program_of(calls)}, links.topology) == Approx(3));
}

// The first call takes a seconds without contention. Another job uses its link for as long, so the
// call takes 2 a, and the second call starts later. If both calls started together, the longer one
// would hide this delay.
TEST_CASE("calls in order: contention for one call delays the next") {
  const Links links(2);
  for (const double contended : {0.5, 1., 1.5}) {
    CallsInOrder calls, others;
    calls.add(tensor, links.over(0, contended), contended);
    calls.add(tensor, links.over(1, 2), 2);
    others.add(tensor, links.over(0, contended), contended);
    CHECK(first_lasts({program_of(calls), program_of(others)}, links.topology) ==
          Approx(2 * contended + 2));
  }
}

}  // namespace
}  // namespace lambcast
