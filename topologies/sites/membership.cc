#include "topologies/sites/membership.h"

#include <algorithm>
#include <cmath>

namespace lambcast {
namespace {

constexpr double low_quantile = 0.05, high_quantile = 0.95;

// Above this mean, the normal distribution is used: it is within half an event of the Poisson sum,
// which would underflow.
constexpr double many_events = 500;
constexpr double deviations = 1.6449;  // 95 % quantile of the normal distribution

}  // namespace

double failure_share(const Site& site, Duration undone) {
  return site.mtbf ? (site.outage.value.s() + undone.s()) / site.mtbf->value.s() : 0;
}

double present_share(const Site& site, Duration undone) {
  if (!site.stays) return 1;
  const double stays = site.stays->value.s();
  return std::max(0.0, stays - 2 * undone.s()) / (stays + site.away.value.s());
}

std::vector<double> chances_of_counts(std::span<const double> chances) {
  std::vector<double> of_counts{1};
  for (const double chance : chances) {
    of_counts.push_back(0);
    for (std::size_t k = of_counts.size() - 1; k > 0; --k)
      of_counts[k] = of_counts[k] * (1 - chance) + of_counts[k - 1] * chance;
    of_counts[0] *= 1 - chance;
  }
  return of_counts;
}

Expected training_sites(std::span<const double> chances) {
  Expected sites;
  for (const double chance : chances) sites.mean += chance;
  const std::vector<double> of_counts = chances_of_counts(chances);
  double below = 0;
  for (std::size_t k = 0; k < of_counts.size(); ++k) {
    if (below < low_quantile) sites.low = static_cast<double>(k);
    if (below < high_quantile) sites.high = static_cast<double>(k);
    below += of_counts[k];
  }
  return sites;
}

Expected poisson_events(double mean) {
  Expected events{mean, 0, 0};
  if (mean > many_events) {
    events.low = mean - deviations * std::sqrt(mean);
    events.high = mean + deviations * std::sqrt(mean);
    return events;
  }
  double below = 0, chance = std::exp(-mean);
  for (double k = 0; below < high_quantile; chance *= mean / ++k) {
    if (below < low_quantile) events.low = k;
    events.high = k;
    below += chance;
  }
  return events;
}

}  // namespace lambcast
