#include "experiments/advise/break_even.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/scenario/scenario.h"
#include "models/training/price/gpu_way_limit.h"
#include "models/training/run/forecast.h"
#include "models/training/run/stream_limit.h"
#include "sim/base/table.h"

namespace lambcast {
namespace {

// Parses a bandwidth as --set accepts it: a rate, or a table with a rate and its evidence.
Bandwidth stated_rate(const std::string& text) {
  Table table = Table::parse("", "");
  table.set("nominal", text, "--set cluster.nic.nominal");
  return table.get<Sourced<Bandwidth>>("nominal").value;
}

std::optional<Bandwidth> limit_of(NicLimit limit, const Cluster& cluster, int nodes) {
  if (limit == NicLimit::gpu_way) return gpu_way_limit(cluster, nodes);
  const auto streams = stream_limit(cluster);
  return streams ? std::optional(streams->nic) : std::nullopt;
}

}  // namespace

double break_even_level(const SpeedupAt& speedup) {
  constexpr double indistinct = 1e-3;
  const PayingBandwidth found = break_even(speedup, 1);
  if (!found.at) return 1;
  const double slower = speedup(*found.at / 2), faster = speedup(*found.at * 2);
  const bool flat = std::abs(slower - 1) < indistinct && std::abs(faster - 1) < indistinct;
  return flat ? 1 + indistinct : 1;
}

PayingBandwidth break_even(const SpeedupAt& speedup, double level, Bandwidth fastest) {
  const auto pays_at = [&](double bit_per_s) { return speedup(Bandwidth(bit_per_s / 8)) > level; };
  double low = 1e8, high = std::max(2e8, fastest.value() * 8);  // bit/s
  const bool pays_low = pays_at(low), pays_high = pays_at(high);
  if (pays_low == pays_high) return {std::nullopt, false, pays_low};
  while (high / low > 1.001) {
    const double middle = std::sqrt(low * high);
    (pays_at(middle) == pays_low ? low : high) = middle;
  }
  return {Bandwidth(std::sqrt(low * high) / 8), pays_high, false};
}

PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog, CollectiveCosts& costs,
                           Bandwidth fastest) {
  const auto speedup = [&](Bandwidth nic) {
    const Scenario scenario = resolve(at_bandwidth(what_if, nic), catalog);
    return forecast(scenario.training, costs).run.speedup_vs_baseline;
  };
  PayingBandwidth found = break_even(speedup, break_even_level(speedup), fastest);
  if (fastest < Bandwidth(1e13 / 8)) found.up_to = fastest;
  return found;
}

std::optional<Bandwidth> held_back_beyond(const WhatIf& asked, bool plain, NicLimit limit,
                                          Catalog& catalog, CollectiveCosts& costs) {
  // Sets the NIC bandwidth as the search does, since the description may state a measured one.
  const Scenario fastest = resolve(at_bandwidth(asked, Bandwidth(1e12)), catalog);
  const auto beyond = limit_of(limit, *fastest.training.cluster, fastest.training.nodes());
  if (!beyond) return std::nullopt;
  const auto time_of = [&](const WhatIf& what_if) {
    const Scenario scenario = resolve(what_if, catalog);
    return forecast(plain ? scenario.training : plain_run(scenario.training), costs).run.time_s;
  };
  const WhatIf unlimited = at_bandwidth(asked, Bandwidth(1e12));
  const double least = time_of(unlimited);
  const auto is_least = [&](Bandwidth nic) {
    return std::abs(time_of(at_bandwidth(asked, nic)) / least - 1) < 0.01;
  };
  if (is_least(*beyond)) return beyond;
  if (limit != NicLimit::streams) return std::nullopt;
  // This limit holds for rings. Other algorithms have several peers and reach it at a higher
  // bandwidth.
  WhatIf more_streams = unlimited;
  more_streams["cluster.nccl.connections"] =
      fmt::format("{}", 2 * fastest.training.cluster->nccl.connections);
  if (time_of(more_streams) > 0.99 * least) return std::nullopt;
  double low = beyond->value(), high = 1e12;
  while (high / low > 1.01) {
    const double middle = std::sqrt(low * high);
    (is_least(Bandwidth(middle)) ? high : low) = middle;
  }
  return Bandwidth(high);
}

Bandwidth fastest_of_use(const WhatIf& asked, Catalog& catalog, CollectiveCosts& costs) {
  Bandwidth fastest(1e13 / 8);
  for (const NicLimit limit : {NicLimit::streams, NicLimit::gpu_way})
    if (const auto beyond = held_back_beyond(asked, false, limit, catalog, costs))
      fastest = std::min(fastest, *beyond);
  return fastest;
}

WhatIf at_bandwidth(WhatIf what_if, Bandwidth nic) {
  const std::string rate = fmt::format("{} bit/s", nic.value() * 8);
  what_if["cluster.nic.bandwidth"] = rate;
  const auto plate = what_if.find("cluster.nic.nominal");
  if (plate != what_if.end() && stated_rate(plate->second) < nic) plate->second = rate;
  return what_if;
}

}  // namespace lambcast
