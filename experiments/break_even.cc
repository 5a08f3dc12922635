#include "experiments/break_even.h"

#include <fmt/format.h>

#include <cmath>

#include "experiments/scenario.h"
#include "models/training/forecast.h"

namespace lambcast {

PayingBandwidth break_even(const std::function<bool(Bandwidth)>& pays) {
  const auto pays_at = [&](double bit_per_s) { return pays(Bandwidth(bit_per_s / 8)); };
  double low = 1e8, high = 1e13;  // bit/s
  const bool pays_low = pays_at(low), pays_high = pays_at(high);
  if (pays_low == pays_high) return {std::nullopt, false, pays_low};
  while (high / low > 1.001) {
    const double middle = std::sqrt(low * high);
    (pays_at(middle) == pays_low ? low : high) = middle;
  }
  return {Bandwidth(std::sqrt(low * high) / 8), pays_high, false};
}

PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog) {
  CollectiveCosts costs;
  return break_even([&](Bandwidth nic) {
    const Scenario scenario = resolve(at_bandwidth(what_if, nic), catalog);
    return forecast(scenario.training, costs).run.speedup_vs_baseline > 1;
  });
}

WhatIf at_bandwidth(WhatIf what_if, Bandwidth nic) {
  what_if["cluster.nic.bandwidth"] = fmt::format("{} bit/s", nic.value() * 8);
  return what_if;
}

}  // namespace lambcast
