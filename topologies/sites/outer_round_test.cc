#include "topologies/sites/outer_round.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

SiteGroup sites_of(std::size_t count, double up, double down, Duration rtt = Duration(),
                   Via via = Via::direct) {
  SiteGroup group;
  group.via = via;
  Site site;
  site.gpus = 8;
  site.link.up.value = Bandwidth(up);
  site.link.down.value = Bandwidth(down);
  site.link.rtt.value = rtt;
  site.link.window.value = Bytes(1e12);
  group.sites.assign(count, site);
  return group;
}

std::vector<Duration> equal_steps(const SiteGroup& group, double seconds) {
  return std::vector<Duration>(group.sites.size(), Duration::seconds(seconds));
}

OuterExchange exchange_of(const char* codec, int every, int fragments = 1, int delay = 0) {
  OuterExchange exchange;
  exchange.weights = 1e9;
  exchange.codec = outer_codec(codec, "--codec");
  exchange.every = every;
  exchange.fragments = fragments;
  exchange.delay = delay;
  return exchange;
}

OuterRound round_of(const SiteGroup& group, const OuterExchange& exchange, double step = 1) {
  return outer_round(group, equal_steps(group, step), exchange);
}

TEST_CASE("outer round: transfers follow their closed forms") {
  const Duration rtt = Duration::seconds(0.1);
  // A ring of 4 moves 2 * 3/4 * 1 GB at 0.5 GB/s, with 3 round trips.
  const OuterRound ring = round_of(sites_of(4, 0.5e9, 1e9, rtt), exchange_of("int8", 100));
  CHECK(ring.transfer.s() == Approx(3.0 + 0.3));
  CHECK(ring.sent.value() == Approx(1.5e9));
  // A gather moves 3 * 0.5 GB at 0.5 GB/s, with 1.5 round trips.
  const OuterRound gather = round_of(sites_of(4, 0.5e9, 1e9, rtt), exchange_of("e3m0", 100));
  CHECK(gather.transfer.s() == Approx(3.0 + 0.15));
  // A store takes 0.5 GB up at 0.5 GB/s, then 1.5 GB down at 1 GB/s, with 2 round trips.
  const SiteGroup store = sites_of(4, 0.5e9, 1e9, rtt, Via::store);
  const OuterRound star = round_of(store, exchange_of("e3m0", 100));
  CHECK(star.transfer.s() == Approx(1.0 + 1.5 + 0.2));
  CHECK(star.sent.value() == Approx(0.5e9));
  CHECK(star.received.value() == Approx(1.5e9));
}

TEST_CASE("outer round: a blocking exchange is exposed in full, a delayed one only in part") {
  const SiteGroup two = sites_of(2, 1e8, 1e8);
  // 1 GB at 0.1 GB/s takes 10 s, after 20 steps of 1 s.
  CHECK(round_of(two, exchange_of("int8", 20)).exposed.s() == Approx(10));
  CHECK(round_of(two, exchange_of("int8", 20)).utilisation == Approx(20.0 / 30));
  // Four fragments take 2.5 s each, of which one step of 1 s is hidden.
  CHECK(round_of(two, exchange_of("int8", 20, 4, 1)).exposed.s() == Approx(4 * 1.5));
  CHECK(round_of(two, exchange_of("int8", 20, 4, 3)).exposed.s() == Approx(0));
  // A delay longer than the period of fragments hides no more: the link needs 40 s in a round of 20
  // s.
  const SiteGroup slow = sites_of(2, 2.5e7, 2.5e7);
  CHECK(round_of(slow, exchange_of("int8", 20, 4, 20)).exposed.s() == Approx(20));
}

TEST_CASE("outer round: an exchange by layer hides the backward pass") {
  const SiteGroup two = sites_of(2, 1e9, 1e9);
  OuterExchange exchange = exchange_of("int8", 10);
  exchange.layers = 10;
  // The 1 s of transfer begins with the highest of 10 layers, so 0.9 of the backward pass (2/3 s)
  // hides it.
  CHECK(round_of(two, exchange).exposed.s() == Approx(1 - 0.9 * 2 / 3));
  // The lowest layer's tenth of the transfer begins when no backward pass is left to hide it.
  CHECK(round_of(two, exchange, 10).exposed.s() == Approx(0.1));
  // Each of five fragments has two layers. Half of the first fragment's 0.2 s is exposed. The
  // others are awaited one second or more later, and are hidden.
  exchange.fragments = 5;
  CHECK(round_of(two, exchange, 10).exposed.s() == Approx(0.1));
  // With steps of 0.4 s, the slack grows by 0.04 s per fragment: 0.1 + 0.06 + 0.02 s are exposed.
  CHECK(round_of(two, exchange, 0.4).exposed.s() == Approx(0.18));
}

TEST_CASE("outer round: by layer, the series is the sum over fragments") {
  const SiteGroup two = sites_of(2, 3e7, 3e7);
  for (const int fragments : {1, 2, 3, 8, 24, 40, 100})
    for (const int delay : {0, 1, 3})
      for (const double step : {0.01, 0.1, 0.7, 3.0}) {
        OuterExchange exchange = exchange_of("e3m0", 100, fragments, delay);
        exchange.layers = 24;
        const OuterRound round = round_of(two, exchange, step);
        const double transfer = round.transfer.s();
        double sum = 0;
        for (int f = 0; f < fragments; ++f) {
          const double lowest = fragments < 24 ? f : f * 24.0 / fragments;
          const double highest = lowest + std::max(0, 24 - fragments);
          const double whole = transfer - step * (2 * highest + lowest) / 3 / 24;
          const double last = std::min(1.0, fragments / 24.0) * transfer - step * lowest / 24;
          const double hidden = step * std::min<double>(delay, 100.0 / fragments);
          sum += std::max(0.0, std::max(whole, last) - hidden);
        }
        CHECK(round.exposed.s() ==
              Approx(std::max(sum, fragments * transfer - 100 * step)).margin(1e-9));
      }
}

TEST_CASE("outer round: the link carries one fragment at a time") {
  for (const std::optional<int> layers : {std::optional<int>(), std::optional<int>(24)})
    for (const int delay : {0, 5, 1000}) {
      OuterExchange exchange = exchange_of("bf16", 50, 10, delay);
      exchange.layers = layers;
      for (double rate = 1e6; rate < 1e12; rate *= 3) {
        const OuterRound round = round_of(sites_of(3, rate, rate), exchange);
        CHECK(round.time().s() >= round.transfer.s() * 10 * (1 - 1e-9));
      }
    }
}

TEST_CASE("outer round: a single site equals the plain cluster") {
  for (const Via via : {Via::direct, Via::store}) {
    const OuterRound round =
        round_of(sites_of(1, 1e6, 1e6, Duration::seconds(1), via), exchange_of("fp32", 1));
    CHECK(round.exposed == Duration());
    CHECK(round.sent == Bytes());
    CHECK(round.utilisation == 1);
  }
}

TEST_CASE("outer round: a slow site delays the others unless the quorum leaves it out") {
  const SiteGroup group = sites_of(4, 1e12, 1e12);
  std::vector<Duration> steps = equal_steps(group, 1);
  steps[1] = Duration::seconds(1.5);
  OuterExchange exchange = exchange_of("topk-2bit", 100);
  const OuterRound all = outer_round(group, steps, exchange);
  CHECK(all.compute.s() == Approx(150));
  // Without exchanges, the sites would take 3 + 1 / 1.5 steps a second.
  const double alone = 3 + 1 / 1.5;
  CHECK(all.utilisation == Approx(4 / 1.5 / alone).epsilon(1e-4));
  exchange.quorum = 3;
  const OuterRound three = outer_round(group, steps, exchange);
  CHECK(three.compute.s() == Approx(100));
  CHECK(three.utilisation == Approx(3 / alone).epsilon(1e-4));
  exchange.quorum = 4;
  CHECK(outer_round(group, steps, exchange).time() == all.time());
}

TEST_CASE("outer round: a failure costs the outage and half a round") {
  SiteGroup group = sites_of(4, 1e12, 1e12);
  const OuterExchange exchange = exchange_of("topk-2bit", 100);
  const OuterRound without = round_of(group, exchange);
  group.sites[2].mtbf = {Duration::seconds(3600), {}};
  group.sites[2].outage.value = Duration::seconds(40);
  // Each hour of training loses 40 s of outage and 50 steps of 1 s.
  const OuterRound one = round_of(group, exchange);
  CHECK(one.up_share == Approx(1 / (1 + 90.0 / 3600)).epsilon(1e-4));
  CHECK(one.utilisation == Approx(without.utilisation * one.up_share));
  // Failures of two sites add up: 90 s per hour of training at one site, 650 s per minute at the
  // other.
  group.sites[0].mtbf = {Duration::seconds(60), {}};
  CHECK(round_of(group, exchange).up_share ==
        Approx(1 / (1 + 90.0 / 3600 + 650.0 / 60)).epsilon(1e-4));
}

TEST_CASE("outer round: sites that a quorum leaves out replace failing members") {
  SiteGroup group = sites_of(4, 1e12, 1e12);
  for (Site& site : group.sites) {
    site.mtbf = {Duration::seconds(1'000), {}};
    site.outage.value = Duration::seconds(200);
  }
  OuterExchange exchange = exchange_of("topk-2bit", 100);
  exchange.quorum = 3;
  // A site trains 1,000 of 1,250 s, and rounds go on while at least three of four train.
  const double p = 0.8, enough = p * p * p * (4 * (1 - p) + p);
  const OuterRound three = round_of(group, exchange);
  CHECK(three.utilisation == Approx(0.75 * enough).epsilon(1e-4));
  CHECK(three.training.mean == Approx(4 * p).epsilon(1e-4));
  exchange.quorum = 4;
  CHECK(round_of(group, exchange).utilisation < three.utilisation);
}

TEST_CASE("outer round: a slower site never raises the utilisation") {
  SiteGroup group = sites_of(3, 1e9, 1e9);
  group.sites[2].mtbf = {Duration::seconds(5'000), {}};
  const std::vector<double> plain{1, 1.2, 3};
  for (const bool decoupled : {false, true})
    for (const int delay : {0, 2})
      for (const std::optional<int> quorum : {std::optional<int>(), std::optional<int>(2)}) {
        OuterExchange exchange = exchange_of("int8", 100, 5, delay);
        exchange.decoupled = decoupled;
        exchange.quorum = quorum;
        for (std::size_t slow = 0; slow < 3; ++slow) {
          double before = 1;
          for (double factor = 1; factor < 10; factor *= 1.3) {
            group.sites[slow].slow.value = factor;
            std::vector<Duration> steps;
            for (std::size_t i = 0; i < 3; ++i)
              steps.push_back(Duration::seconds(plain[i] * group.sites[i].slow.value));
            const double utilisation = outer_round(group, steps, exchange).utilisation;
            CHECK(utilisation <= before * (1 + 1e-9));
            before = utilisation;
          }
          group.sites[slow].slow.value = 1;
        }
      }
}

TEST_CASE("outer round: a member that is away loses its work, and delays no other site") {
  SiteGroup group = sites_of(4, 1e12, 1e12);
  const OuterExchange exchange = exchange_of("topk-2bit", 100);
  group.sites[1].stays = {Duration::seconds(10'000), {}};
  group.sites[1].away.value = Duration::seconds(2'000);
  const OuterRound round = round_of(group, exchange);
  // The site is present for 10,000 of each 12,000 s, less two halves of a round of 100 s.
  CHECK(round.work[1] == Approx(9'900.0 / 12'000).epsilon(1e-4));
  CHECK(round.utilisation == Approx((3 + 0.825) / 4).epsilon(1e-4));
  CHECK(round.training.low == 3);
  CHECK(round.training.high == 4);
}

TEST_CASE("outer round: decoupled sites are slow and fail on their own") {
  SiteGroup group = sites_of(4, 1e12, 1e12);
  std::vector<Duration> steps = equal_steps(group, 1);
  steps[1] = Duration::seconds(2);
  group.sites[2].mtbf = {Duration::seconds(1'000), {}};
  group.sites[2].outage.value = Duration::seconds(450);
  OuterExchange exchange = exchange_of("topk-2bit", 100, 10, 2);
  exchange.decoupled = true;
  const OuterRound round = outer_round(group, steps, exchange);
  // The third site trains 1,000 of 1,500 s. The slow site loses no time: it takes 2 s per step all
  // the time.
  CHECK(round.times[1].s() == Approx(200));
  const double alone = 3 + 1. / 2;
  CHECK(round.utilisation == Approx((2 + 1. / 2 + 2. / 3) / alone).epsilon(1e-4));
  // With a quorum of all sites, they train only while the third site trains.
  exchange.quorum = 4;
  // Share of all sites' training time in which all four train. It is assumed equal for each site.
  const double share = 4 * (2. / 3) / (3 + 2. / 3);
  CHECK(outer_round(group, steps, exchange).utilisation ==
        Approx(share * (2 + 1. / 2 + 2. / 3) / alone).epsilon(1e-4));
  exchange.decoupled = false;
  CHECK(outer_round(group, steps, exchange).utilisation ==
        Approx(4 / 2. / alone / (1 + 0.55)).epsilon(1e-3));
}

TEST_CASE("outer round: decoupled sites wait for their slowest pair, and for a store") {
  SiteGroup group = sites_of(3, 1e9, 1e9);
  OuterExchange exchange = exchange_of("int8", 100);
  exchange.decoupled = true;
  group.pairs = {{0, 1, {Bandwidth(1e8), {}}, {}}};
  const OuterRound round = round_of(group, exchange);
  // 1 GB takes one second, and ten seconds over the slow pair.
  CHECK(round.times[0].s() == Approx(110));
  CHECK(round.times[1].s() == Approx(110));
  CHECK(round.times[2].s() == Approx(101));
  // A store merges nothing: each site downloads two payloads after its own upload.
  CHECK(round_of(sites_of(3, 1e9, 1e9, {}, Via::store), exchange).times[0].s() == Approx(103));
}

TEST_CASE("outer round: a slow pair is avoided by a ring, not by a gather") {
  SiteGroup group = sites_of(4, 1e9, 1e9);
  const OuterExchange ring = exchange_of("int8", 100), gather = exchange_of("e3m0", 100);
  const Duration ring_before = round_of(group, ring).transfer;
  group.pairs = {{0, 1, {Bandwidth(1e8), {}}, {}}};
  // The ring 0-2-1-3 does not cross the slow pair. In a gather, the pair carries 0.5 GB.
  CHECK(round_of(group, ring).transfer == ring_before);
  CHECK(round_of(group, gather).transfer.s() == Approx(5));
  // With two slow pairs, site 0 has only one fast pair left, and a ring needs two.
  group.pairs.push_back({0, 2, {Bandwidth(1e8), {}}, {}});
  CHECK(round_of(group, ring).transfer.s() == Approx(15));
  group.pairs[1].rate.value = Bandwidth(5e8);
  CHECK(round_of(group, ring).transfer.s() == Approx(3));
}

TEST_CASE("outer round: a ring takes the best order of its sites") {
  std::mt19937 draw(5);
  for (std::size_t count = 2; count <= 6; ++count)
    for (int repeat = 0; repeat < 20; ++repeat) {
      SiteGroup group = sites_of(count, 1e12, 1e12);
      std::vector<std::vector<double>> seconds(count, std::vector<double>(count));
      const double sent = 2e9 * static_cast<double>(count - 1) / static_cast<double>(count);
      for (std::size_t b = 0; b < count; ++b)
        for (std::size_t a = 0; a < b; ++a) {
          const double rate = 1e7 * (1 + draw() % 9);
          group.pairs.push_back({a, b, {Bandwidth(rate), {}}, {}});
          seconds[a][b] = seconds[b][a] = sent / rate;
        }
      std::vector<std::size_t> order(count);
      std::iota(order.begin(), order.end(), std::size_t{0});
      double best = 1e9;
      do {
        double slowest = 0;
        for (std::size_t i = 0; i < count; ++i)
          slowest = std::max(slowest, seconds[order[i]][order[(i + 1) % count]]);
        best = std::min(best, slowest);
      } while (std::next_permutation(order.begin() + 1, order.end()));
      CHECK(round_of(group, exchange_of("int8", 100)).transfer.s() == Approx(best));
    }
}

TEST_CASE("outer round: an exchange waits for the slowest round trip") {
  SiteGroup group = sites_of(4, 1e12, 1e12, Duration::seconds(0.1));
  for (Site& site : group.sites) site.link.jitter.value = Duration::seconds(0.01);
  const double trip = 0.1 + 0.01 * std::sqrt(2 * std::log(4.0));
  CHECK(round_of(group, exchange_of("topk-2bit", 100)).transfer.s() ==
        Approx(1.5 * trip).epsilon(1e-3));
}

TEST_CASE("outer round: more bandwidth, fewer bits, more steps and more delay are never slower") {
  for (const OuterCodec& codec : outer_codecs())
    for (const Via via : {Via::direct, Via::store})
      for (const int fragments : {1, 5})
        for (const int delay : {0, 1, 7}) {
          OuterExchange exchange = exchange_of("fp32", 30, fragments, delay);
          exchange.codec = codec;
          Duration before = Duration::seconds(1e6);
          for (double rate = 1e6; rate < 1e12; rate *= 3) {
            const SiteGroup group = sites_of(5, rate, 2 * rate, Duration::seconds(0.05), via);
            const OuterRound round = round_of(group, exchange);
            CHECK(round.exposed <= before);
            before = round.exposed;
            OuterExchange more = exchange;
            more.every *= 2;
            CHECK(round_of(group, more).utilisation >= round.utilisation);
            more = exchange;
            ++more.delay;
            CHECK(round_of(group, more).exposed <= round.exposed);
            more = exchange;
            more.codec.bits /= 2;
            CHECK(round_of(group, more).exposed <= round.exposed);
          }
        }
}

TEST_CASE("outer round: the bandwidth for a utilisation gives this utilisation") {
  for (const Via via : {Via::direct, Via::store})
    for (const std::optional<int> layers : {std::optional<int>(), std::optional<int>(24)})
      for (const int delay : {0, 2})
        for (const double utilisation : {0.5, 0.9, 0.99}) {
          OuterExchange exchange = exchange_of("e3m0", 30, 3, delay);
          exchange.layers = layers;
          const Duration rtt = Duration::seconds(0.01), step = Duration::seconds(1);
          const auto rate = bandwidth_for(utilisation, sites_of(3, 1, 1, rtt, via), step, exchange);
          REQUIRE(rate);
          const SiteGroup group = sites_of(3, rate->value(), rate->value(), rtt, via);
          CHECK(round_of(group, exchange).utilisation == Approx(utilisation));
        }
  // The quorum of decoupled sites does not change what a site exchanges.
  OuterExchange alone = exchange_of("int4", 24, 24, 2);
  alone.decoupled = true;
  const auto with_all = bandwidth_for(0.9, sites_of(3, 1, 1), Duration::seconds(1), alone);
  alone.quorum = 1;
  CHECK(bandwidth_for(0.9, sites_of(3, 1, 1), Duration::seconds(1), alone) == with_all);
  // A blocking exchange is never hidden.
  CHECK(!bandwidth_for(1, sites_of(2, 1, 1), Duration::seconds(1), exchange_of("bf16", 100)));
  // MaxText's page states that 8e9 weights of 32 bits in 37 steps of 0.5 s need 14 Gbit/s.
  OuterExchange whole = exchange_of("fp32", 37, 1, 37);
  whole.weights = 8e9;
  const auto needed = bandwidth_for(1, sites_of(2, 1, 1), Duration::seconds(0.5), whole);
  REQUIRE(needed);
  CHECK(needed->value() * 8 == Approx(14e9).epsilon(0.02));
}

TEST_CASE("outer round: invalid settings are refused with the flag") {
  OuterExchange exchange = exchange_of("int8", 10, 11);
  CHECK_THROWS_WITH(require_possible(exchange, 2), Contains("--fragments"));
  exchange.fragments = 10;
  exchange.quorum = 3;
  CHECK_THROWS_WITH(require_possible(exchange, 2), Contains("--quorum") && Contains("2 to 2"));
  exchange.quorum = 2;
  CHECK_NOTHROW(require_possible(exchange, 2));
  exchange.quorum = 1;
  CHECK_THROWS_WITH(require_possible(exchange, 2), Contains("--decoupled"));
  exchange.decoupled = true;
  CHECK_NOTHROW(require_possible(exchange, 2));
  CHECK_THROWS_WITH(outer_codec("bf61", "--codec"), Contains("did you mean 'bf16'"));
}

}  // namespace
}  // namespace lambcast
