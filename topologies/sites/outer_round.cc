#include "topologies/sites/outer_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {
namespace {

// The backward pass takes twice the FLOPs of the forward pass.
constexpr double backward_share = 2.0 / 3;

constexpr std::array codecs{
    OuterCodec{"fp32", 32, true},  // DiLoCo
    OuterCodec{"bf16", 16, true},  // Streaming DiLoCo
    OuterCodec{"fp16", 16, true},  // OpenDiLoCo
    OuterCodec{"int8", 8, true},   // prime (INTELLECT-1): requantised at each hop
    OuterCodec{"e3m0", 4, false},  // Streaming DiLoCo: codes of unreduced values
    OuterCodec{"int4", 4, false},  // Decoupled DiLoCo
    // 64 of each 4,096 values are sent, each with an index of 12 bits and a value of 2 bits.
    OuterCodec{"topk-2bit", 64.0 * 14 / 4096, false},  // SparseLoCo
};

// Bytes of a fragment that a site sends and receives, and the number of round trips.
struct Traffic {
  Bytes sent, received;
  double round_trips = 0;
  bool at_once = true;  // whether sending and receiving overlap
};

Traffic traffic_of(const OuterExchange& exchange, Via via, std::size_t sites) {
  if (sites < 2) return {};
  const double others = static_cast<double>(sites) - 1;
  const Bytes payload(exchange.weights * exchange.codec.bits / 8 / exchange.fragments);
  if (via == Via::store) return {payload, payload * others, 2, false};
  if (exchange.decoupled) return {payload, payload, 2};
  if (!exchange.codec.sums) return {payload * others, payload * others, others / 2};
  const Bytes ring = payload * (2 * others / static_cast<double>(sites));
  return {ring, ring, others};
}

// Returns the slowest of the round trips that `sites` sites make at the same time.
Duration slowest_trip(Duration rtt, const SiteLink& link, std::size_t sites) {
  const double trips = static_cast<double>(std::max<std::size_t>(sites, 2));
  return rtt + link.jitter.value.scaled(std::sqrt(2 * std::log(trips)));
}

Duration transfer_over(const Traffic& traffic, const SiteLink& link, std::size_t sites) {
  const Duration latency = slowest_trip(link.rtt.value, link, sites).scaled(traffic.round_trips);
  const Duration out = traffic.sent / reached_rate(link, link.up.value);
  const Duration in = traffic.received / reached_rate(link, link.down.value);
  return latency + (traffic.at_once ? std::max(out, in) : out + in);
}

// Returns the transfer of all payloads through a store. Each site downloads the payloads of the
// others one after another, as their uploads end.
Duration over_store(const Traffic& traffic, const SiteGroup& group,
                    const std::vector<std::size_t>& members) {
  if (members.size() < 2) return {};
  std::vector<std::pair<Duration, std::size_t>> uploads;
  for (const std::size_t i : members) {
    const SiteLink& link = group.sites[i].link;
    uploads.emplace_back(slowest_trip(link.rtt.value, link, members.size()) +
                             traffic.sent / reached_rate(link, link.up.value),
                         i);
  }
  std::ranges::sort(uploads);
  const Bytes payload = traffic.received / static_cast<double>(members.size() - 1);
  Duration last;
  for (const std::size_t i : members) {
    const SiteLink& link = group.sites[i].link;
    const Duration download = payload / reached_rate(link, link.down.value);
    Duration end;
    for (const auto& [ready, from] : uploads)
      if (from != i) end = std::max(end, ready) + download;
    last = std::max(last, end + slowest_trip(link.rtt.value, link, members.size()));
  }
  return last;
}

Duration over_pair(const SiteGroup& group, const SitePair& pair, Bytes volume, double round_trips) {
  const SiteLink& link = group.sites[pair.a].link;
  const Duration trip = slowest_trip(pair.rtt.value, link, group.sites.size());
  return volume / pair.rate.value + trip.scaled(round_trips);
}

// Returns the slowest transfer of `volume` over the pairs that are used.
template <typename IsUsed>
Duration slowest_pair(const SiteGroup& group, Bytes volume, double round_trips, IsUsed is_used) {
  Duration time;
  for (const SitePair& pair : group.pairs)
    if (is_used(pair)) time = std::max(time, over_pair(group, pair, volume, round_trips));
  return time;
}

// Returns whether a ring through all sites exists in which only sites with an allowed link are
// neighbours: bit j of allowed[i] is set if sites i and j have one. Takes n 2^n operations.
bool has_ring(const std::vector<unsigned>& allowed) {
  const std::size_t sites = allowed.size();
  const std::size_t all = (std::size_t{1} << sites) - 1;
  std::vector<unsigned> ends(all + 1);  // for each set of sites: last sites of paths from site 0
  ends[1] = 1;
  for (std::size_t set = 1; set < all; set += 2)
    for (std::size_t next = 1; next < sites; ++next)
      if ((set >> next & 1) == 0 && (ends[set] & allowed[next]) != 0)
        ends[set | std::size_t{1} << next] |= 1U << next;
  return (ends[all] & allowed[0]) != 0;
}

// Returns the time of the slowest link in the best ring, whose slowest link is as fast as possible.
Duration best_ring(const std::vector<std::vector<Duration>>& links) {
  std::vector<Duration> times;
  for (const std::vector<Duration>& of_site : links)
    times.insert(times.end(), of_site.begin(), of_site.end());
  std::ranges::sort(times);
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return *std::ranges::partition_point(times, [&](Duration slowest) {
    std::vector<unsigned> allowed(links.size());
    for (std::size_t i = 0; i < links.size(); ++i)
      for (std::size_t j = 0; j < links.size(); ++j)
        if (links[i][j] <= slowest) allowed[i] |= 1U << j;
    return !has_ring(allowed);
  });
}

// Returns the transfer over the pairs of a gather, or over those of the best ring.
Duration over_pairs(const SiteGroup& group, std::vector<std::size_t> members,
                    const Traffic& traffic, const OuterExchange& exchange) {
  const std::size_t sites = members.size();
  if (group.pairs.empty() || sites < 2 || exchange.decoupled) return {};
  std::ranges::sort(members);
  // Index of each site in `members`; `sites` if the site is not a member.
  std::vector<std::size_t> places(group.sites.size(), sites);
  for (std::size_t i = 0; i < sites; ++i) places[members[i]] = i;
  const auto is_between_members = [&](const SitePair& pair) {
    return places[pair.a] < sites && places[pair.b] < sites;
  };
  if (!exchange.codec.sums)
    return slowest_pair(group, traffic.sent / static_cast<double>(sites - 1), traffic.round_trips,
                        is_between_members);
  std::vector<std::vector<Duration>> links(sites, std::vector<Duration>(sites));
  for (const SitePair& pair : group.pairs)
    if (is_between_members(pair))
      links[places[pair.a]][places[pair.b]] = links[places[pair.b]][places[pair.a]] =
          over_pair(group, pair, traffic.sent, traffic.round_trips);
  constexpr std::size_t most_ordered = 12;
  if (sites <= most_ordered) return best_ring(links);
  Duration slowest;
  for (std::size_t i = 0; i < sites; ++i) slowest = std::max(slowest, links[i][(i + 1) % sites]);
  return slowest;
}

// Returns the seconds that all fragments of a round expose, if each takes `transfer` seconds. By
// layer, the exposure of fragment f falls by the slack of its lowest layer, an arithmetic series.
double exposed_s(double transfer, double step, const OuterExchange& exchange) {
  const double fragments = exchange.fragments;
  const double steps = exchange.every;
  const double of_link = fragments * transfer - steps * step;
  const double delay = std::min(static_cast<double>(exchange.delay), steps / fragments) * step;
  if (!exchange.layers) return std::max({0.0, of_link, fragments * (transfer - delay)});
  const double layers = *exchange.layers;
  const double above_lowest = backward_share * std::max(0.0, 1 - fragments / layers) * step;
  const double of_lowest = std::min(1.0, fragments / layers) * transfer;
  const double first = std::max(transfer - above_lowest, of_lowest) - delay;
  if (first <= 0) return std::max(0.0, of_link);
  const double falls = std::min(1 / layers, 1 / fragments) * step;
  const double exposing = std::min(fragments, std::ceil(first / falls));
  return std::max(of_link, exposing * first - falls * exposing * (exposing - 1) / 2);
}

// Returns the longest transfer of a fragment with which a round exposes at most `exposed`.
double longest_transfer_s(double exposed, double step, const OuterExchange& exchange) {
  double low = 0, high = (exposed + exchange.every * step) / exchange.fragments;
  if (exposed_s(high, step, exchange) <= exposed) return high;
  constexpr int halvings = 60;  // enough for all digits of a double
  for (int i = 0; i < halvings; ++i) {
    const double middle = (low + high) / 2;
    (exposed_s(middle, step, exchange) <= exposed ? low : high) = middle;
  }
  return low;
}

// Returns the indices of the sites that the round waits for, in the order in which they are ready.
std::vector<std::size_t> waited_for(std::span<const Duration> steps,
                                    const OuterExchange& exchange) {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i]; });
  if (exchange.quorum && !exchange.decoupled)
    order.resize(static_cast<std::size_t>(*exchange.quorum));
  return order;
}

// Returns the round time of decoupled site `i`, whose path to the syncer is its slowest pair.
Duration time_alone(const Traffic& traffic, const SiteGroup& group, std::size_t i, Duration step,
                    const OuterExchange& exchange) {
  const Duration over_its_pairs =
      slowest_pair(group, traffic.sent, traffic.round_trips,
                   [&](const SitePair& pair) { return pair.a == i || pair.b == i; });
  const Duration transfer =
      std::max(over_its_pairs, transfer_over(traffic, group.sites[i].link, 2));
  return step * exchange.every + Duration::seconds(exposed_s(transfer.s(), step.s(), exchange));
}

// Returns the share of all sites' training time in which at least a quorum of sites trains.
double share_with_quorum(std::span<const double> chances, const OuterExchange& exchange) {
  const std::vector<double> of_counts = chances_of_counts(chances);
  double all = 0, with_quorum = 0;
  for (std::size_t k = 0; k < of_counts.size(); ++k) {
    const double sites = static_cast<double>(k) * of_counts[k];
    all += sites;
    if (k >= static_cast<std::size_t>(exchange.quorum.value_or(1))) with_quorum += sites;
  }
  return all > 0 ? with_quorum / all : 0;
}

// Sets the work that failures, departures and joins leave to each site, and the number of training
// sites. Sites that a quorum leaves out replace members that fail or leave.
void add_membership(const SiteGroup& group, const OuterExchange& exchange, OuterRound& round) {
  const std::vector<Site>& sites = group.sites;
  const bool replaced = round.members.size() < sites.size();
  std::vector<double> chances;  // probability that a site trains while rounds go on
  double failures = 0, up = 0;
  for (std::size_t i = 0; i < sites.size(); ++i) {
    const Duration undone = round.times[i].scaled(0.5);
    const double share = failure_share(sites[i], undone);
    failures += share;
    up += 1 / (1 + share) / static_cast<double>(sites.size());
    chances.push_back(present_share(sites[i], undone) /
                      (replaced || exchange.decoupled ? 1 + share : 1));
  }
  double all = exchange.decoupled ? share_with_quorum(chances, exchange) : 1 / (1 + failures);
  if (replaced) {
    const std::vector<double> of_counts = chances_of_counts(chances);
    all = 1;
    for (std::size_t k = 0; k < round.members.size(); ++k) all -= of_counts[k];
  }
  round.up_share = exchange.decoupled ? up : all;
  round.training = training_sites(chances);
  round.work.assign(sites.size(), 0);
  for (const std::size_t i : round.members) round.work[i] = all * (replaced ? 1 : chances[i]);
}

}  // namespace

std::span<const OuterCodec> outer_codecs() { return codecs; }

const OuterCodec& outer_codec(std::string_view name, const std::string& flag) {
  std::vector<std::string> names;
  for (const OuterCodec& codec : codecs) {
    if (codec.name == name) return codec;
    names.emplace_back(codec.name);
  }
  fail_unknown({"", 0, flag}, "codec", name, names);
}

void require_possible(const OuterExchange& exchange, std::size_t sites) {
  if (exchange.fragments > exchange.every)
    fail_input({"", 0, "--fragments"},
               fmt::format("{} fragments do not fit {} steps, a step each", exchange.fragments,
                           exchange.every),
               "1 to --every");
  const std::size_t least = exchange.decoupled || sites == 1 ? 1 : 2;
  const auto quorum = static_cast<std::size_t>(exchange.quorum.value_or(static_cast<int>(sites)));
  if (quorum < least || quorum > sites)
    fail_input(
        {"", 0, "--quorum"}, fmt::format("{} of {} sites", quorum, sites),
        fmt::format("{} to {}{}", least, sites,
                    least == 1 ? "" : ", or 1 with --decoupled: alone, one site averages nothing"));
}

OuterRound outer_round(const SiteGroup& group, std::span<const Duration> steps,
                       const OuterExchange& exchange) {
  OuterRound round;
  round.members = waited_for(steps, exchange);
  const std::vector<std::size_t>& members = round.members;
  const Traffic traffic = traffic_of(exchange, group.via, members.size());
  round.sent = traffic.sent * exchange.fragments;
  round.received = traffic.received * exchange.fragments;
  round.transfer = over_pairs(group, members, traffic, exchange);
  if (group.via == Via::store)
    round.transfer = over_store(traffic, group, members);
  else
    for (const std::size_t i : members)
      round.transfer =
          std::max(round.transfer, transfer_over(traffic, group.sites[i].link, members.size()));
  const Duration last = steps[members.back()];
  round.compute = last * exchange.every;
  round.exposed = Duration::seconds(exposed_s(round.transfer.s(), last.s(), exchange));
  round.times.assign(steps.size(), round.time());
  if (exchange.decoupled)
    for (std::size_t i = 0; i < steps.size(); ++i)
      round.times[i] = time_alone(traffic, group, i, steps[i], exchange);
  round.pace = exchange.decoupled ? members.front() : members.back();
  round.kept = steps[round.pace].s() * exchange.every / round.times[round.pace].s();
  add_membership(group, exchange, round);
  double reached = 0, alone = 0;  // steps per second
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double busy = steps[i].s() * exchange.every / round.times[i].s();
    reached += round.work[i] * busy / steps[i].s();
    alone += group.sites[i].slow.value / steps[i].s();
  }
  round.utilisation = reached / alone;
  return round;
}

std::optional<Bandwidth> bandwidth_for(double utilisation, const SiteGroup& group, Duration step,
                                       const OuterExchange& exchange) {
  const std::size_t sites = exchange.quorum && !exchange.decoupled
                                ? static_cast<std::size_t>(*exchange.quorum)
                                : group.sites.size();
  const Traffic traffic = traffic_of(exchange, group.via, sites);
  Duration rtt;
  for (const Site& site : group.sites)
    rtt = std::max(rtt, slowest_trip(site.link.rtt.value, site.link, sites));
  const double exposed = step.s() * exchange.every * (1 / utilisation - 1);
  const double transfer = longest_transfer_s(exposed, step.s(), exchange);
  const double left = transfer - rtt.s() * traffic.round_trips;
  constexpr double least = 1e-9;  // as a share of a step; below it no transfer can be hidden
  if (left <= least * step.s()) return std::nullopt;
  const Bytes volume = traffic.at_once ? traffic.sent : traffic.sent + traffic.received;
  return Bandwidth(volume.value() / left);
}

}  // namespace lambcast
