// Compares the fluid model with a plain one that keeps no state and solves all rates at every
// event.
#include "sim/network/flow_network.h"
#include "sim/network/fair_share.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <list>
#include <random>
#include <tuple>

#include "sim/base/error.h"
#include "sim/network/effort.h"

namespace lambcast {
namespace {

struct Start {
  double at;  // seconds
  const FlowSet* set;
};

struct Fluid {
  std::vector<LinkId> links;
  const Flow* flow;
  std::size_t owner;
  double left, rate;
};

// Max-min fair rates: all rates rise together until a link is full or a cap is reached.
void find_rates(const Topology& topology, std::vector<Fluid>& fluids) {
  std::vector<double> room, rising;
  for (LinkId link = 0; link < topology.links().size(); ++link) {
    room.push_back(topology.capacity(link).value());
    rising.push_back(0);
  }
  for (Fluid& fluid : fluids) {
    fluid.rate = -1;
    for (const LinkId link : fluid.links) rising[link] += fluid.flow->weight;
  }
  for (std::size_t fixed = 0; fixed < fluids.size(); ++fixed) {
    Fluid* tightest = nullptr;
    double least = std::numeric_limits<double>::infinity();
    for (Fluid& fluid : fluids) {
      if (fluid.rate >= 0) continue;
      double level = fluid.flow->cap.value() > 0 ? fluid.flow->cap.value() / fluid.flow->weight
                                                 : std::numeric_limits<double>::infinity();
      for (const LinkId link : fluid.links) level = std::min(level, room[link] / rising[link]);
      if (level >= least) continue;
      least = level;
      tightest = &fluid;
    }
    tightest->rate = least * tightest->flow->weight;
    for (const LinkId link : tightest->links) {
      room[link] -= tightest->rate;
      rising[link] -= tightest->flow->weight;
    }
  }
}

std::vector<double> plain_ends(const Topology& topology, const std::vector<Start>& starts) {
  std::vector<double> ends(starts.size());
  std::vector<Fluid> fluids;
  double now = 0;
  std::size_t next = 0;
  while (next < starts.size() || !fluids.empty()) {
    find_rates(topology, fluids);
    double until = next < starts.size() ? starts[next].at : std::numeric_limits<double>::infinity();
    for (const Fluid& fluid : fluids) until = std::min(until, now + fluid.left / fluid.rate);
    for (Fluid& fluid : fluids) fluid.left -= fluid.rate * (until - now);
    now = until;
    std::erase_if(fluids, [&](const Fluid& fluid) {
      if (fluid.left > fluid.rate * 1e-11) return false;
      ends[fluid.owner] = now;
      return true;
    });
    for (; next < starts.size() && starts[next].at <= now; ++next) {
      const LinkLists& links = starts[next].set->paths->links();
      starts[next].set->each([&](const Flow& flow, std::size_t path) {
        const auto of = links.of(path);
        fluids.push_back({{of.begin(), of.end()}, &flow, next, flow.bytes.value(), 0});
      });
    }
  }
  return ends;
}

SimTime at(double seconds) { return SimTime::at(Duration::seconds(seconds)); }

std::vector<double> network_ends(Network& network, const std::vector<Start>& starts) {
  std::vector<double> ends(starts.size());
  std::size_t next = 0;
  while (true) {
    const auto event = network.next_event();
    if (!event && next == starts.size()) return ends;
    if (event && (next == starts.size() || *event <= at(starts[next].at))) {
      std::vector<Ticket> finished;
      network.advance(*event, finished);
      for (const Ticket ticket : finished) ends[ticket] = event->since_start().s();
    } else {
      network.start(static_cast<Ticket>(next), *starts[next].set, 1, at(starts[next].at));
      ++next;
    }
  }
}

Topology star(int links) {
  Topology topology;
  for (int i = 0; i <= links; ++i) topology.add_vertex({VertexKind::bus, 0, i});
  for (int i = 0; i < links; ++i)
    topology.add_link(0, static_cast<VertexId>(i + 1), Bandwidth(1e9 * (1 + i % 3)),
                      LinkKind::local);
  return topology;
}

// Adds and removes flows over random links, one or several at a time.
int check_random_rates(std::uint32_t seed, int changes) {
  std::mt19937 random(seed);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random()) % n; };
  const std::uint32_t links = 3 + below(20);
  Topology topology;
  for (VertexId i = 0; i <= links; ++i) topology.add_vertex({VertexKind::bus, 0, 0});
  for (VertexId i = 0; i < links; ++i)
    topology.add_link(0, i + 1, Bandwidth(1e9 * (1 + below(3)) * (below(2) + 1)), LinkKind::local);
  MaxMin rates(topology);
  std::vector<Fluid> fluids;
  std::list<std::pair<std::vector<LinkId>, Flow>> kept;  // stable addresses for the links
  int compared = 0;
  for (int change = 0; change < changes; ++change) {
    for (std::uint32_t i = below(3) == 0 ? 8 : 1; i > 0 && !fluids.empty(); --i) {
      const auto gone = fluids.begin() + below(static_cast<std::uint32_t>(fluids.size()));
      rates.remove(static_cast<MaxMin::FlowId>(gone->owner));
      fluids.erase(gone);
    }
    const bool adds = fluids.size() < 3 || below(3) > 0;
    for (std::uint32_t i = below(4) == 0 ? 1 + below(40) : 1 + below(2); i > 0 && adds; --i) {
      std::vector<LinkId> path;
      for (std::uint32_t hop = 0; hop <= below(4); ++hop)
        if (const LinkId link = below(links); std::ranges::find(path, link) == path.end())
          path.push_back(link);
      const Flow flow{Bytes(1), Bandwidth(below(5) == 0 ? 1e8 * (1 + below(9)) : 0), 1 + below(3)};
      const auto& [on, of] = kept.emplace_back(std::move(path), flow);
      double ceiling = flow.cap.value() > 0 ? flow.cap.value() : 1e99;
      for (const LinkId link : on) ceiling = std::min(ceiling, topology.capacity(link).value());
      fluids.push_back({on, &of, rates.add(on, flow.weight, ceiling), 0, 0});
    }
    rates.solve();
    find_rates(topology, fluids);
    for (const Fluid& fluid : fluids) {
      ++compared;
      const double rate = rates.rate(static_cast<MaxMin::FlowId>(fluid.owner));
      if (rate != Approx(fluid.rate).epsilon(1e-9)) FAIL_CHECK(rate << " is not " << fluid.rate);
    }
  }
  return compared;
}

int walk_random_rates(std::uint32_t cases) {
  int compared = 0;
  for (std::uint32_t seed = 0; seed < cases; ++seed) {
    INFO("seed " << seed);
    compared += check_random_rates(seed, 20);
  }
  return compared;
}

TEST_CASE("max-min: solving only affected flows gives the rates of a full solve") {
  CHECK(walk_random_rates(200) > 10'000);
}

TEST_CASE("max-min: solving only affected flows is right in ten thousand cases", "[.long]") {
  CHECK(walk_random_rates(10'000) > 500'000);
}

// Flows to one link over links of their own, so that one link limits all of them at first and other
// links or ceilings later.
TEST_CASE("max-min: flows that share their only limit rise together as they end, to other limits") {
  constexpr std::uint32_t uplinks = 8, each = 16;
  for (const auto& [uplink, other, ceiling] :
       {std::tuple{1e9, 0U, 1e9}, {0.4e9, 0U, 1e9}, {0.3e9, 6U, 1e9}, {1e9, 0U, 0.05e9}}) {
    Topology topology;
    for (VertexId i = 0; i <= uplinks + 1; ++i) topology.add_vertex({VertexKind::bus, 0, 0});
    topology.add_link(0, 1, Bandwidth(1e9), LinkKind::local);
    for (VertexId i = 0; i < uplinks; ++i)
      topology.add_link(0, i + 2, Bandwidth(uplink), LinkKind::local);
    MaxMin rates(topology);
    const Flow one{Bytes(1), Bandwidth(ceiling)}, two{Bytes(1), Bandwidth(ceiling), 2};
    std::list<std::vector<LinkId>> kept;
    std::vector<Fluid> fluids;
    const auto add = [&](std::vector<LinkId> path, const Flow& flow) {
      const auto& on = kept.emplace_back(std::move(path));
      const double highest = on.size() > 1 ? std::min(ceiling, uplink) : uplink;
      fluids.push_back({on, &flow, rates.add(on, flow.weight, highest), 0, 0});
    };
    for (std::uint32_t i = 0; i < uplinks * each; ++i)
      add({1 + i % uplinks, 0}, i % 3 == 0 ? two : one);
    for (std::uint32_t i = 0; i < other; ++i) add({1 + i % 2}, two);
    std::mt19937 random(3);
    while (!fluids.empty()) {
      INFO(fluids.size() << " flows, uplinks of " << uplink << ", ceiling " << ceiling);
      rates.solve();
      find_rates(topology, fluids);
      for (const Fluid& fluid : fluids)
        CHECK(rates.rate(static_cast<MaxMin::FlowId>(fluid.owner)) ==
              Approx(fluid.rate).epsilon(1e-9));
      const auto gone = fluids.begin() + static_cast<std::ptrdiff_t>(random() % fluids.size());
      rates.remove(static_cast<MaxMin::FlowId>(gone->owner));
      fluids.erase(gone);
    }
  }
}

TEST_CASE(
    "flow network: rates of groups and remembered sets equal those of a model without memory") {
  const int links = 12;
  const Topology topology = star(links);
  std::mt19937 random(7);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random()) % n; };
  for (int run = 0; run < 60; ++run) {
    std::vector<FlowSet> sets;
    for (int i = 0; i < 6; ++i) {
      std::vector<std::vector<LinkId>> on;
      std::vector<Flow> flows;
      for (std::uint32_t f = 0; f <= below(4); ++f) {
        std::vector<LinkId>& path = on.emplace_back();
        LinkId link = below(links);
        for (std::uint32_t hop = 0; hop <= below(3); ++hop, link = (link + 1 + below(3)) % links)
          if (std::find(path.begin(), path.end(), link) == path.end()) path.push_back(link);
        flows.push_back(
            {Bytes(1e6 * (1 + below(5))), Bandwidth(below(4) == 0 ? 3e8 : 0), 1 + below(2)});
      }
      sets.emplace_back(on, flows);
    }
    // A set is started several times: shortly after its last start, or after the network was idle.
    std::vector<Start> starts;
    double now = 0;
    for (int i = 0; i < 40; ++i) {
      now += below(3) == 0 ? 0.1 : 1e-3 * below(6);
      starts.push_back({now, &sets[below(6)]});
    }
    FlowNetwork network(topology);
    const std::vector<double> ends = network_ends(network, starts);
    const std::vector<double> plain = plain_ends(topology, starts);
    for (std::size_t i = 0; i < starts.size(); ++i)
      CHECK(ends[i] - starts[i].at == Approx(plain[i] - starts[i].at).epsilon(1e-7));
  }
}

// Returns the number of rates computed until `flows` messages of 1 to 1,000 MB between random pairs
// have ended. There are as many nodes as messages, under leaves of 32 joined by 8 spines.
std::int64_t filled_by_random_pairs(std::uint32_t flows) {
  constexpr std::uint32_t ports = 32, spines = 8;
  Topology topology;
  for (int i = 0; i < 2; ++i) topology.add_vertex({VertexKind::fabric});
  for (std::uint32_t i = 0; i < flows + flows / ports * spines; ++i)
    topology.add_duplex(0, 1, Bandwidth(1e9), LinkKind::network);
  const auto spine_of = [&](std::uint32_t leaf, std::uint32_t spine) {
    return 2 * (flows + leaf * spines + spine);
  };
  std::mt19937 random(1);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random()) % n; };
  std::vector<FlowSet> sets;
  for (std::uint32_t i = 0; i < flows; ++i) {
    const std::uint32_t from = below(flows), to = (from + 1 + below(flows - 1)) % flows;
    std::vector<LinkId> links{2 * from};
    if (from / ports != to / ports) {
      links.push_back(spine_of(from / ports, to % spines));
      links.push_back(spine_of(to / ports, to % spines) + 1);
    }
    links.push_back(2 * to + 1);
    sets.emplace_back(std::vector<std::vector<LinkId>>{links},
                      std::vector<Flow>{{Bytes(1e6 * (1 + below(1000)))}});
  }
  const Effort before = effort();
  FlowNetwork network(topology);
  for (std::uint32_t i = 0; i < flows; ++i) network.start(i, sets[i], 1, SimTime());
  std::vector<Ticket> finished;
  while (const auto event = network.next_event()) network.advance(*event, finished);
  CHECK(finished.size() == flows);
  return (effort() - before).filled;
}

TEST_CASE("flow network: work grows more slowly than flows to the power of 1.5 on random pairs") {
  const auto few = static_cast<double>(filled_by_random_pairs(256));
  const auto many = static_cast<double>(filled_by_random_pairs(2048));
  INFO(few << " and " << many << ": flows to the power of " << std::log(many / few) / std::log(8));
  CHECK(many / few < std::pow(8, 1.5));
}

TEST_CASE("fair shares: equal flows take the time of max-min filling, in one event") {
  const Topology topology = star(12);
  std::mt19937 random(11);
  const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random()) % n; };
  for (int run = 0; run < 200; ++run) {
    std::vector<std::vector<LinkId>> on;
    std::vector<Flow> flows;
    for (std::uint32_t f = 0; f <= below(8); ++f) {
      std::vector<LinkId>& path = on.emplace_back();
      const LinkId link = below(12);
      for (LinkId hop = 0; hop <= below(3); ++hop) path.push_back((link + hop) % 12);
      const std::uint32_t weight = 1 + below(3);
      flows.push_back({Bytes(1e6 * weight), Bandwidth(below(6) == 0 ? 2e8 : 0), weight});
    }
    const FlowSet set(on, flows);
    const LastFlow last = last_flow(set, topology);
    REQUIRE(last.max_min);
    const double plain = plain_ends(topology, {{0, &set}}).front();
    CHECK((last.bytes / last.share).s() == Approx(plain).epsilon(1e-9));
    FlowNetwork network(topology);
    network.start(0, set, 1, at(0));
    CHECK(network.next_event()->since_start().s() == Approx(plain).epsilon(1e-9));
  }
  // A short flow that ends early leaves its link to the long one, which the shares do not show.
  const FlowSet unlike({{0}, {0}}, {{Bytes(1e6)}, {Bytes(2e6)}});
  CHECK_FALSE(last_flow(unlike, topology).max_min);
  CHECK(plain_ends(topology, {{0, &unlike}}).front() == Approx(3e-3));
}

TEST_CASE("flow network: a repeated set on an idle network takes the same time, in one event") {
  const Topology topology = star(4);
  // Three flows that end one after the other: 1, 2 and 3 MB over a link of 1 GB/s.
  const FlowSet set({{0}, {0}, {0}}, {{Bytes(1e6)}, {Bytes(2e6)}, {Bytes(3e6)}});
  const FlowSet other(std::vector<std::vector<LinkId>>{{0}}, {{Bytes(1e6)}});
  FlowNetwork network(topology);
  const auto events_until_end = [&](double begin) {
    network.start(5, set, 1, at(begin));
    int events = 0;
    std::vector<Ticket> finished;
    while (const auto next = network.next_event()) {
      ++events;
      network.advance(*next, finished);
      if (!finished.empty()) CHECK((*next - at(begin)).ps() == 6'000'000'000);
    }
    CHECK(finished == std::vector<Ticket>{5});
    return events;
  };
  CHECK(events_until_end(0) == 3);
  CHECK(events_until_end(1) == 1);
  CHECK(events_until_end(2) == 1);
  // Another set begins at 3 ms: 1 MB is done, 1 and 2 MB of the two other flows are left. With the
  // new 1 MB, two flows end at 3 + 3 = 6 ms, and the third 1 MB later, at 7 ms.
  network.start(1, set, 1, at(3));
  network.start(2, other, 1, at(3.003));
  CHECK(network.rate_on(0).value() == Approx(1e9));
  std::vector<std::pair<Ticket, double>> ends;
  while (const auto next = network.next_event()) {
    std::vector<Ticket> finished;
    network.advance(*next, finished);
    for (const Ticket ticket : finished) ends.emplace_back(ticket, next->since_start().s());
  }
  REQUIRE(ends.size() == 2);
  CHECK(ends[0].first == 2);
  CHECK(ends[0].second == Approx(3.006).epsilon(1e-9));
  CHECK(ends[1].second == Approx(3.007).epsilon(1e-9));
}

TEST_CASE("flow network: a set without bytes to move does not count as alone in the network") {
  const Topology topology = star(2);
  const FlowSet nothing(std::vector<std::vector<LinkId>>{{0}}, {{Bytes(0)}});
  FlowNetwork network(topology);
  std::vector<Ticket> finished;
  for (int i = 0; i < 3; ++i) {
    network.start(3, nothing, 1, at(i));
    CHECK(*network.next_event() == at(i));
    network.advance(at(i), finished);
  }
  CHECK(finished == std::vector<Ticket>{3, 3, 3});
  CHECK_FALSE(network.next_event());
}

// The clock counts picoseconds in 64 bits and ends at 106 days.
TEST_CASE("flow network: a flow that outlasts the clock is a usage error, not an internal one") {
  const Topology topology = star(2);
  const FlowSet fits(std::vector<std::vector<LinkId>>{{0}}, {{Bytes(9e15)}});
  const FlowSet outlasts(std::vector<std::vector<LinkId>>{{0}}, {{Bytes(1e16)}});
  FlowNetwork network(topology);
  network.start(0, fits, 1, at(0));
  CHECK(network.next_event()->since_start().s() == Approx(9e6));
  FlowNetwork another(topology);
  CHECK_THROWS_WITH(another.start(0, outlasts, 1, at(0)), Catch::Contains("106 days"));
  CHECK_THROWS_AS(FlowNetwork(topology).start(0, outlasts, 1, at(0)), Error);
}

}  // namespace
}  // namespace lambcast
