#include "sim/engine/engine.h"

#include <catch2/catch.hpp>

#include "sim/network/effort.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

Duration microseconds(double value) { return Duration::microseconds(value); }

struct Fixture {
  Topology topology;
  std::unique_ptr<Network> network = make_network(NetworkModel::flow, topology);
  TaskGraph graph;
  ResourceId gpu = graph.add_resource("gpu");
  ResourceId stream = graph.add_resource("stream");
};

TEST_CASE_METHOD(Fixture, "engine: a resource runs one task at a time, in order of readiness") {
  const TaskId a = graph.add_compute("a", Category::forward, gpu, microseconds(3));
  const TaskId b = graph.add_compute("b", Category::forward, gpu, microseconds(2));
  const TaskId c = graph.add_compute("c", Category::backward, stream, microseconds(4), {a});
  const Timeline timeline = run(graph, *network);
  CHECK(timeline.spans[b].begin == timeline.spans[a].end);
  CHECK(timeline.spans[c].begin == timeline.spans[a].end);
  CHECK(timeline.end.since_start() == microseconds(7));
}

TEST_CASE_METHOD(Fixture, "engine: rounds pay their latency each, repetitions count") {
  // The program takes 3 + 5 * (2 + 0) us, with its five rounds as one event and also expanded.
  const auto nothing =
      std::make_shared<const FlowSet>(std::vector<std::vector<LinkId>>(), std::vector<Flow>());
  CommProgram program{microseconds(3), {{nothing, microseconds(2), 5}}, false};
  graph.add_communication("c", Category::gradient_comm, stream, &program);
  CHECK(run(graph, *network).end.since_start() == microseconds(13));
  program.expand = true;
  const Timeline expanded = run(graph, *network);
  CHECK(expanded.end.since_start() == microseconds(13));
  CHECK(expanded.events > 5);
}

TEST_CASE("engine: the effort of a run counts its events, started flows and solves") {
  Topology topology;
  const LinkId link = topology.add_link(topology.add_vertex(Vertex{}),
                                        topology.add_vertex(Vertex{}), Bandwidth(1e9), LinkKind{});
  const auto network = make_network(NetworkModel::flow, topology);
  const auto two = std::make_shared<const FlowSet>(std::vector<std::vector<LinkId>>{{link}, {link}},
                                                   std::vector<Flow>{{Bytes(1e3)}, {Bytes(4e3)}});
  const CommProgram program{microseconds(0), {{two, microseconds(0), 3}}, false};
  TaskGraph graph;
  graph.add_communication("c", Category::gradient_comm, graph.add_resource("stream"), &program);
  const Effort before = effort();
  const Timeline timeline = run(graph, *network);
  const Effort spent = effort() - before;
  CHECK(spent.events == static_cast<std::int64_t>(timeline.events));
  CHECK(spent.flows == 2);
  CHECK(spent.solves == 2);  // one solve for both flows, one for the longer flow
}

TEST_CASE_METHOD(Fixture, "engine: exposed communication is what computation does not cover") {
  const TaskId first = graph.add_compute("f", Category::backward, gpu, microseconds(4));
  graph.add_compute("c", Category::gradient_comm, stream, microseconds(10));
  graph.add_compute("o", Category::optimizer, gpu, microseconds(1), {first});
  const Timeline timeline = run(graph, *network);
  CHECK(exposed_time(graph, timeline, {Category::gradient_comm},
                     {Category::backward, Category::optimizer}) == microseconds(5));
  CHECK(exposed_time(graph, timeline, {Category::gradient_comm}, {}) == microseconds(10));
}

TEST_CASE_METHOD(Fixture, "engine: a stuck simulation is an error that names the stuck tasks") {
  const TaskId a = graph.add_compute("left", Category::forward, gpu, microseconds(1));
  const TaskId b = graph.add_compute("right", Category::forward, gpu, microseconds(1), {a});
  graph.add_dependency(b, a);
  CHECK_THROWS_WITH(run(graph, *network), Contains("stuck") && Contains("2 of 2 tasks") &&
                                              Contains("'left' (waits for 1)"));
}

}  // namespace
}  // namespace lambcast
