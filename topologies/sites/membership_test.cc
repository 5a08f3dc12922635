#include "topologies/sites/membership.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

namespace lambcast {
namespace {

TEST_CASE("membership: the number of equal sites that train is binomial") {
  const std::vector<double> chances(4, 0.5);
  const std::vector<double> of_counts = chances_of_counts(chances);
  CHECK(of_counts == std::vector<double>{1. / 16, 4. / 16, 6. / 16, 4. / 16, 1. / 16});
  // Each of four sites trains half of the time. No site trains in 6 % of the time, at most three in
  // 94 %.
  CHECK(training_sites(chances).low == 0);
  CHECK(training_sites(chances).high == 4);
  CHECK(training_sites(std::vector<double>(5, 1.0)).low == 5);
  CHECK(training_sites({}).high == 0);
}

TEST_CASE("membership: unlike sites have the mean and variance of their coins") {
  const std::vector<double> chances{0.1, 0.9, 0.35, 1, 0, 0.6};
  const std::vector<double> of_counts = chances_of_counts(chances);
  double mean = 0, square = 0, variance = 0;
  for (std::size_t k = 0; k < of_counts.size(); ++k) {
    mean += static_cast<double>(k) * of_counts[k];
    square += static_cast<double>(k * k) * of_counts[k];
  }
  for (const double chance : chances) variance += chance * (1 - chance);
  CHECK(std::accumulate(of_counts.begin(), of_counts.end(), 0.0) == Approx(1));
  CHECK(mean == Approx(training_sites(chances).mean));
  CHECK(square - mean * mean == Approx(variance));
}

TEST_CASE("membership: failures of a run are Poisson") {
  // No event has a probability of exp(-3) = 0.050, just below 5 %, so the low end is 1. At most 6
  // events occur in 96.6 %.
  const Expected three = poisson_events(3);
  CHECK(three.low == 1);
  CHECK(three.high == 6);
  CHECK(poisson_events(0).high == 0);
  // The sum and the normal approximation agree at the number of events where the form changes.
  CHECK(poisson_events(499).low == Approx(poisson_events(501).low).margin(3));
  CHECK(poisson_events(499).high == Approx(poisson_events(501).high).margin(3));
}

}  // namespace
}  // namespace lambcast
