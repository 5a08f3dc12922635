#include "topologies/sites/outer_round.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {
namespace {

// Backward takes twice the FLOPs of forward.
constexpr double backward_share = 2.0 / 3;

constexpr std::array codecs{
    OuterCodec{"fp32", 32, true, "DiLoCo"},
    OuterCodec{"bf16", 16, true, "Streaming DiLoCo"},
    OuterCodec{"fp16", 16, true, "OpenDiLoCo"},
    OuterCodec{"int8", 8, true, "prime (INTELLECT-1): requantised at each hop"},
    OuterCodec{"e3m0", 4, false, "Streaming DiLoCo: codes of unreduced values"},
    OuterCodec{"int4", 4, false, "Decoupled DiLoCo"},
    // 64 of 4,096 values, an index of 12 bits and a value of 2.
    OuterCodec{"topk-2bit", 64.0 * 14 / 4096, false, "SparseLoCo"},
};

// Bytes that a site sends and receives of a fragment, and its round trips.
struct Traffic {
  Bytes sent, received;
  double round_trips = 0;
  bool at_once = true;  // sends while it receives
};

Traffic traffic_of(const OuterExchange& exchange, Via via, std::size_t sites) {
  if (sites < 2) return {};
  const double others = static_cast<double>(sites) - 1;
  const Bytes payload(exchange.weights * exchange.codec.bits / 8 / exchange.fragments);
  if (via == Via::store) return {payload, payload * others, 2, false};
  if (!exchange.codec.sums) return {payload * others, payload * others, others / 2};
  const Bytes ring = payload * (2 * others / static_cast<double>(sites));
  return {ring, ring, others};
}

Duration transfer_over(const Traffic& traffic, Bandwidth up, Bandwidth down, Duration rtt) {
  const Duration latency = rtt.scaled(traffic.round_trips);
  const Duration out = traffic.sent / up, in = traffic.received / down;
  return latency + (traffic.at_once ? std::max(out, in) : out + in);
}

// Steps between the send of a fragment and the use of its result.
double hidden_steps(const OuterExchange& exchange) {
  const double period = static_cast<double>(exchange.every) / exchange.fragments;
  return std::min<double>(exchange.delay, period) + (exchange.layers ? backward_share : 0);
}

// Share of a fragment's transfer that leaves when nothing is left to hide it.
double share_of_last_layer(const OuterExchange& exchange) {
  return std::min(1.0, static_cast<double>(exchange.fragments) / *exchange.layers);
}

Duration exposed_of(Duration transfer, Duration step, const OuterExchange& exchange) {
  const Duration hidden = step.scaled(hidden_steps(exchange));
  Duration exposed = transfer > hidden ? transfer - hidden : Duration();
  if (exchange.layers && exchange.delay == 0)
    exposed = std::max(exposed, transfer.scaled(share_of_last_layer(exchange)));
  return exposed * exchange.fragments;
}

// Indices of the sites in the order in which they are ready, as many as the round waits for.
std::vector<std::size_t> waited_for(std::span<const Duration> steps,
                                    const OuterExchange& exchange) {
  std::vector<std::size_t> order(steps.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return steps[i]; });
  if (exchange.quorum) order.resize(static_cast<std::size_t>(*exchange.quorum));
  return order;
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
  if (exchange.quorum &&
      (*exchange.quorum < 1 || static_cast<std::size_t>(*exchange.quorum) > sites))
    fail_input({"", 0, "--quorum"}, fmt::format("{} of {} sites", *exchange.quorum, sites),
               fmt::format("1 to {}", sites));
}

OuterRound outer_round(const SiteGroup& group, std::span<const Duration> steps,
                       const OuterExchange& exchange) {
  OuterRound round;
  round.members = waited_for(steps, exchange);
  const std::vector<std::size_t>& members = round.members;
  const Traffic traffic = traffic_of(exchange, group.via, members.size());
  for (const std::size_t i : members) {
    const SiteLink& link = group.sites[i].link;
    round.transfer = std::max(round.transfer,
                              transfer_over(traffic, reached_rate(link, link.up.value),
                                            reached_rate(link, link.down.value), link.rtt.value));
  }
  const Duration last = steps[members.back()];
  round.compute = last * exchange.every;
  round.exposed = exposed_of(round.transfer, last, exchange);
  round.sent = traffic.sent * exchange.fragments;
  round.received = traffic.received * exchange.fragments;
  double busy = 0, gpus = 0;
  for (const Site& site : group.sites) gpus += site.gpus;
  for (const std::size_t i : members) busy += group.sites[i].gpus * (steps[i] / last);
  for (const std::size_t i : members) {
    const Site& site = group.sites[i];
    if (!site.mtbf) continue;
    round.up_share -= (site.outage.value.s() + round.compute.s() / 2) / site.mtbf->value.s();
  }
  round.up_share = std::max(0.0, round.up_share);
  round.utilisation = busy / gpus * (round.compute / round.time()) * round.up_share;
  return round;
}

std::optional<Bandwidth> bandwidth_for(double utilisation, const SiteGroup& group, Duration step,
                                       const OuterExchange& exchange) {
  const std::size_t sites =
      exchange.quorum ? static_cast<std::size_t>(*exchange.quorum) : group.sites.size();
  const Traffic traffic = traffic_of(exchange, group.via, sites);
  Duration rtt;
  for (const Site& site : group.sites) rtt = std::max(rtt, site.link.rtt.value);
  const double exposed = step.s() * exchange.every * (1 / utilisation - 1) / exchange.fragments;
  double transfer = exposed + step.s() * hidden_steps(exchange);
  if (exchange.layers && exchange.delay == 0)
    transfer = std::min(transfer, exposed / share_of_last_layer(exchange));
  const double left = transfer - rtt.s() * traffic.round_trips;
  if (left <= 0) return std::nullopt;
  const Bytes volume = traffic.at_once ? traffic.sent : traffic.sent + traffic.received;
  return Bandwidth(volume.value() / left);
}

}  // namespace lambcast
