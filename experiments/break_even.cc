#include "experiments/break_even.h"

#include <fmt/format.h>

#include <cmath>

#include "experiments/scenario.h"
#include "models/training/forecast.h"

namespace lambcast {
namespace {

constexpr double lowest_bit_per_s = 1e8, highest_bit_per_s = 1e13;

bool pays_at(const WhatIf& what_if, double bit_per_s, Catalog& catalog, CollectiveCosts& costs) {
  WhatIf at = what_if;
  at["cluster.nic.bandwidth"] = fmt::format("{} bit/s", bit_per_s);
  return forecast(resolve(at, catalog).training, costs).run.speedup_vs_baseline > 1;
}

}  // namespace

PayingBandwidth break_even(const WhatIf& what_if, Catalog& catalog) {
  CollectiveCosts costs;
  double low = lowest_bit_per_s, high = highest_bit_per_s;
  const bool pays_low = pays_at(what_if, low, catalog, costs);
  const bool pays_high = pays_at(what_if, high, catalog, costs);
  if (pays_low == pays_high) return {std::nullopt, false, pays_low};
  while (high / low > 1.001) {
    const double middle = std::sqrt(low * high);
    (pays_at(what_if, middle, catalog, costs) == pays_low ? low : high) = middle;
  }
  return {Bandwidth(std::sqrt(low * high) / 8), pays_high, false};
}

}  // namespace lambcast
