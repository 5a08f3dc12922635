#include "topologies/sites/outer_round.h"

#include <catch2/catch.hpp>
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
  // Ring of 4: 2 * 3/4 * 1 GB at 0.5 GB/s, and 3 round trips.
  const OuterRound ring = round_of(sites_of(4, 0.5e9, 1e9, rtt), exchange_of("int8", 100));
  CHECK(ring.transfer.s() == Approx(3.0 + 0.3));
  CHECK(ring.sent.value() == Approx(1.5e9));
  // Gather: 3 * 0.5 GB at 0.5 GB/s, and 1.5 round trips.
  const OuterRound gather = round_of(sites_of(4, 0.5e9, 1e9, rtt), exchange_of("e3m0", 100));
  CHECK(gather.transfer.s() == Approx(3.0 + 0.15));
  // Store: 0.5 GB up at 0.5 GB/s, then 1.5 GB down at 1 GB/s, and 2 round trips.
  const SiteGroup store = sites_of(4, 0.5e9, 1e9, rtt, Via::store);
  const OuterRound star = round_of(store, exchange_of("e3m0", 100));
  CHECK(star.transfer.s() == Approx(1.0 + 1.5 + 0.2));
  CHECK(star.sent.value() == Approx(0.5e9));
  CHECK(star.received.value() == Approx(1.5e9));
}

TEST_CASE("outer round: a blocking exchange is exposed whole, a delayed one by what is left") {
  const SiteGroup two = sites_of(2, 1e8, 1e8);
  // 1 GB at 0.1 GB/s: 10 s after 20 steps of 1 s.
  CHECK(round_of(two, exchange_of("int8", 20)).exposed.s() == Approx(10));
  CHECK(round_of(two, exchange_of("int8", 20)).utilisation == Approx(20.0 / 30));
  // Four fragments of 2.5 s, each with one step to hide in.
  CHECK(round_of(two, exchange_of("int8", 20, 4, 1)).exposed.s() == Approx(4 * 1.5));
  CHECK(round_of(two, exchange_of("int8", 20, 4, 3)).exposed.s() == Approx(0));
  // A delay beyond the next fragment's start hides no more: the link carries 40 s in 20 s.
  const SiteGroup slow = sites_of(2, 2.5e7, 2.5e7);
  CHECK(round_of(slow, exchange_of("int8", 20, 4, 20)).exposed.s() == Approx(20));
}

TEST_CASE("outer round: an exchange by layer hides the backward pass") {
  const SiteGroup two = sites_of(2, 1e9, 1e9);
  OuterExchange exchange = exchange_of("int8", 10);
  exchange.layers = 10;
  CHECK(round_of(two, exchange).exposed.s() == Approx(1.0 / 3));
  // The last layer leaves when nothing is left to hide it.
  CHECK(round_of(two, exchange, 10).exposed.s() == Approx(0.1));
  // Each of five fragments has two layers, so half of its 0.2 s is exposed.
  exchange.fragments = 5;
  CHECK(round_of(two, exchange, 10).exposed.s() == Approx(5 * 0.1));
}

TEST_CASE("outer round: one site is the plain cluster") {
  for (const Via via : {Via::direct, Via::store}) {
    const OuterRound round =
        round_of(sites_of(1, 1e6, 1e6, Duration::seconds(1), via), exchange_of("fp32", 1));
    CHECK(round.exposed == Duration());
    CHECK(round.sent == Bytes());
    CHECK(round.utilisation == 1);
  }
}

TEST_CASE("outer round: a slow site holds up the others unless the quorum leaves it out") {
  const SiteGroup group = sites_of(4, 1e12, 1e12);
  std::vector<Duration> steps = equal_steps(group, 1);
  steps[1] = Duration::seconds(1.5);
  OuterExchange exchange = exchange_of("topk-2bit", 100);
  const OuterRound all = outer_round(group, steps, exchange);
  CHECK(all.compute.s() == Approx(150));
  CHECK(all.utilisation == Approx((3 / 1.5 + 1) / 4).epsilon(1e-4));
  exchange.quorum = 3;
  const OuterRound three = outer_round(group, steps, exchange);
  CHECK(three.compute.s() == Approx(100));
  CHECK(three.utilisation == Approx(0.75).epsilon(1e-4));
  exchange.quorum = 4;
  CHECK(outer_round(group, steps, exchange).time() == all.time());
}

TEST_CASE("outer round: a failure costs the outage and half a round") {
  SiteGroup group = sites_of(4, 1e12, 1e12);
  const OuterExchange exchange = exchange_of("topk-2bit", 100);
  const OuterRound without = round_of(group, exchange);
  group.sites[2].mtbf = {Duration::seconds(3600), {}};
  group.sites[2].outage.value = Duration::seconds(40);
  // 40 s and 50 steps of 1 s in 3,600.
  const OuterRound one = round_of(group, exchange);
  CHECK(one.up_share == Approx(1 - 90.0 / 3600));
  CHECK(one.utilisation == Approx(without.utilisation * one.up_share));
  group.sites[0].mtbf = {Duration::seconds(60), {}};
  CHECK(round_of(group, exchange).utilisation == 0);
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

TEST_CASE("outer round: at the bandwidth of a utilisation the round has it") {
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
  // A blocking exchange is never hidden whole.
  CHECK(!bandwidth_for(1, sites_of(2, 1, 1), Duration::seconds(1), exchange_of("bf16", 100)));
  // MaxText's page: 8e9 weights of 32 bits in 37 steps of 0.5 s need 14 Gbit/s.
  OuterExchange whole = exchange_of("fp32", 37, 1, 37);
  whole.weights = 8e9;
  const auto needed = bandwidth_for(1, sites_of(2, 1, 1), Duration::seconds(0.5), whole);
  REQUIRE(needed);
  CHECK(needed->value() * 8 == Approx(14e9).epsilon(0.02));
}

TEST_CASE("outer round: what cannot be is refused with the flag") {
  OuterExchange exchange = exchange_of("int8", 10, 11);
  CHECK_THROWS_WITH(require_possible(exchange, 2), Contains("--fragments"));
  exchange.fragments = 10;
  exchange.quorum = 3;
  CHECK_THROWS_WITH(require_possible(exchange, 2), Contains("--quorum") && Contains("1 to 2"));
  exchange.quorum = 2;
  CHECK_NOTHROW(require_possible(exchange, 2));
  CHECK_THROWS_WITH(outer_codec("bf61", "--codec"), Contains("did you mean 'bf16'"));
}

}  // namespace
}  // namespace lambcast
