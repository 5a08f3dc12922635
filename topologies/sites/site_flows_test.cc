// Property: the closed forms of transfers between sites equal the times of the same transfers on
// the flow network, for random sites with unequal links, pairs with own rates, and a store.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "sim/network/network.h"
#include "topologies/sites/outer_round.h"

namespace lambcast {
namespace {

// The links between sites: one up and one down at each site, and one each way for each pair with a
// rate of its own.
struct WideArea {
  explicit WideArea(const SiteGroup& group) {
    for (std::size_t i = 0; i < 2 * group.sites.size() + 1; ++i)
      topology.add_vertex({VertexKind::bus, 0, static_cast<int>(i)});
    const auto link = [&](Bandwidth rate) {
      return topology.add_link(0, static_cast<VertexId>(1), rate, LinkKind::network);
    };
    for (const Site& site : group.sites) {
      up.push_back(link(site.link.up.value));
      down.push_back(link(site.link.down.value));
    }
    for (const SitePair& pair : group.pairs) {
      pairs[{pair.a, pair.b}] = link(pair.rate.value);
      pairs[{pair.b, pair.a}] = link(pair.rate.value);
    }
  }

  std::vector<LinkId> path(std::size_t from, std::size_t to) const {
    std::vector<LinkId> links{up[from], down[to]};
    if (const auto pair = pairs.find({from, to}); pair != pairs.end())
      links.push_back(pair->second);
    return links;
  }

  Topology topology;
  std::vector<LinkId> up, down;
  std::map<std::pair<std::size_t, std::size_t>, LinkId> pairs;
};

// Starts flows in a flow network, and calls `ended` with the ticket of each flow that ends.
class Flows {
 public:
  explicit Flows(const WideArea& area)
      : network_(make_network(NetworkModel::flow, area.topology)) {}

  void start(const std::vector<LinkId>& path, double bytes) {
    sets_.push_back(std::make_unique<FlowSet>(std::vector<std::vector<LinkId>>{path},
                                              std::vector<Flow>{Flow{Bytes(bytes)}}));
    network_->start(static_cast<Ticket>(sets_.size() - 1), *sets_.back(), 1, now_);
  }

  // Returns the time at which the last flow ends.
  template <typename Ended>
  double run(const Ended& ended) {
    while (const auto event = network_->next_event()) {
      now_ = *event;
      std::vector<Ticket> finished;
      network_->advance(now_, finished);
      for (const Ticket ticket : finished) ended(ticket);
    }
    return now_.since_start().s();
  }

 private:
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<FlowSet>> sets_;
  SimTime now_ = SimTime::at(Duration());
};

constexpr double payload = 1e9;  // 1e9 weights of 8 bits

double gather_s(const WideArea& area, std::size_t sites) {
  Flows flows(area);
  for (std::size_t from = 0; from < sites; ++from)
    for (std::size_t to = 0; to < sites; ++to)
      if (from != to) flows.start(area.path(from, to), payload);
  return flows.run([](Ticket) {});
}

// In each of 2 (R - 1) rounds every site sends a part to the next one.
double ring_s(const WideArea& area, const std::vector<std::size_t>& order) {
  Flows flows(area);
  const std::size_t sites = order.size();
  for (std::size_t i = 0; i < sites; ++i)
    flows.start(area.path(order[i], order[(i + 1) % sites]), payload / static_cast<double>(sites));
  return 2 * static_cast<double>(sites - 1) * flows.run([](Ticket) {});
}

double best_ring_s(const WideArea& area, std::size_t sites) {
  std::vector<std::size_t> order;
  for (std::size_t site = 0; site < sites; ++site) order.push_back(site);
  double best = ring_s(area, order);
  while (std::next_permutation(order.begin() + 1, order.end()))
    best = std::min(best, ring_s(area, order));
  return best;
}

// Each site downloads a payload when its upload ends. The first tickets are those of uploads.
double store_s(const WideArea& area, std::size_t sites) {
  Flows flows(area);
  for (std::size_t from = 0; from < sites; ++from) flows.start({area.up[from]}, payload);
  return flows.run([&](Ticket ticket) {
    for (std::size_t to = 0; ticket < sites && to < sites; ++to)
      if (to != ticket) flows.start({area.down[to]}, payload);
  });
}

SiteGroup drawn_sites(std::mt19937& random, std::size_t count) {
  const auto rate = [&] { return Bandwidth(1e8 * (1 + random() % 20)); };
  SiteGroup group;
  for (std::size_t i = 0; i < count; ++i) {
    Site site;
    site.link.up.value = rate();
    site.link.down.value = rate();
    site.link.window.value = Bytes(1e15);
    group.sites.push_back(site);
  }
  return group;
}

double transfer_s(const SiteGroup& group, const OuterCodec& codec) {
  OuterExchange exchange;
  exchange.weights = payload * 8 / codec.bits;
  exchange.codec = codec;
  const std::vector<Duration> steps(group.sites.size(), Duration::seconds(1));
  return outer_round(group, steps, exchange).transfer.s();
}

TEST_CASE("site flows: rings, gathers and stores take the times of the flow network") {
  const OuterCodec &sums = outer_codec("int8", ""), &gathered = outer_codec("e3m0", "");
  std::mt19937 random(49);
  for (int i = 0; i < 200; ++i) {
    const std::size_t count = 2 + random() % 4;
    SiteGroup group = drawn_sites(random, count);
    INFO("case " << i << ", " << count << " sites");
    const WideArea area(group);
    CHECK(transfer_s(group, gathered) == Approx(gather_s(area, count)).epsilon(1e-6));
    CHECK(transfer_s(group, sums) == Approx(best_ring_s(area, count)).epsilon(1e-6));
    group.via = Via::store;
    CHECK(transfer_s(group, sums) == Approx(store_s(area, count)).epsilon(1e-6));
    group.via = Via::direct;
    SitePair& pair = group.pairs.emplace_back();
    pair.b = 1 + random() % (count - 1);
    pair.rate.value = Bandwidth(1e8 * (1 + random() % 5));
    const WideArea with_pair(group);
    CHECK(transfer_s(group, gathered) == Approx(gather_s(with_pair, count)).epsilon(1e-6));
    CHECK(transfer_s(group, sums) == Approx(best_ring_s(with_pair, count)).epsilon(1e-6));
  }
}

}  // namespace
}  // namespace lambcast
