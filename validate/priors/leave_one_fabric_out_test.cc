#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <cmath>
#include <numeric>

#include "validate/calibrate/calibrate.h"
#include "validate/interval_score.h"
#include "validate/priors/learn_priors.h"

namespace lambcast::validate {
namespace {

constexpr std::size_t bands = 3;

std::size_t band_of(Bytes size) {
  return size.value() < small_below ? 0 : size.value() < medium_below ? 1 : 2;
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

TEST_CASE("priors: what ships is what the fabrics teach") {
  const auto fabrics = fabrics_to_learn_from(LAMBCAST_VALIDATE);
  const Priors learned = decode_priors(Table::parse(priors_text(learn_priors(fabrics)), "learned"));
  for (const NetworkKind network : {NetworkKind::rdma, NetworkKind::socket}) {
    const Priors::OfKind &fresh = learned.on(network), &shipped = shipped_priors().on(network);
    CHECK(fresh.fabrics == shipped.fabrics);
    REQUIRE(fresh.of.size() == shipped.of.size());
    for (const auto& [key, prior] : shipped.of) {
      INFO(key);
      REQUIRE(fresh.of.contains(key));
      // Compilers round differently, and valleys are flat.
      CHECK(std::abs(std::log(fresh.typical(key) / prior.typical)) < 0.05);
    }
  }
}

// What forecasts of one band of size were off by where their fabric was left out.
struct LeftOut {
  std::vector<double> off;  // |log(forecast / measured)|
  double inside = 0, score = 0;

  double median() const { return std::expm1(quantile(off, 0.5)); }
  double coverage() const { return inside / static_cast<double>(off.size()); }
  double mean_score() const { return score / static_cast<double>(off.size()); }
};

std::array<LeftOut, bands> left_out(const LearningFabric& fabric, const Priors& others) {
  std::array<LeftOut, bands> all;
  for (const RowError& row : errors_under(fabric, others)) {
    const auto [low, high, calibrated, ground] = uncalibrated_interval(
        row.size, 16, NicRate::nominal, Typical::rdma, Duration::microseconds(1e6));
    const double measured = std::exp(-row.error);
    LeftOut& band = all[band_of(row.size)];
    band.off.push_back(std::abs(row.error));
    band.inside += low.s() <= measured && measured <= high.s() ? 1 : 0;
    band.score += interval_score(low.s(), high.s(), measured);
  }
  return all;
}

// Each RDMA fabric forecast from what the others teach, nothing of its own but its description.
TEST_CASE("priors: a fabric that nobody measured is forecast from the others") {
  const auto fabrics = fabrics_to_learn_from(LAMBCAST_VALIDATE);
  std::vector<double> medians[bands], covered[bands], scores[bands];
  std::string shown = fmt::format("{:<26}{:^24}{:^24}{:^24}\n", "left out: median, in, score",
                                  "below 64 KiB", "to 4 MiB", "above");
  for (const LearningFabric& fabric : fabrics) {
    if (fabric.network != NetworkKind::rdma) continue;
    Priors others;
    others.rdma = learn_kind(fabrics, NetworkKind::rdma, fabric.name, shipped_priors().rdma, false);
    REQUIRE(others.rdma.fabrics == shipped_priors().rdma.fabrics - 1);
    const auto all = left_out(fabric, others);
    shown += fmt::format("{:<26}", fabric.name);
    for (std::size_t band = 0; band < bands; ++band) {
      if (all[band].off.empty()) {
        shown += fmt::format("{:24}", "");
        continue;
      }
      medians[band].push_back(all[band].median());
      covered[band].push_back(all[band].coverage());
      scores[band].push_back(all[band].mean_score());
      shown += fmt::format("{:>9.1f}% {:>4.0f}% {:>6.2f} ", medians[band].back() * 100,
                           covered[band].back() * 100, scores[band].back());
    }
    shown += "\n";
  }
  shown += fmt::format("{:<26}", "over fabrics");
  const double most[] = {0.30, 0.35, 0.20};
  for (std::size_t band = 0; band < bands; ++band) {
    INFO("band " << band);
    const double median = quantile(medians[band], 0.5), coverage = mean(covered[band]);
    shown += fmt::format("{:>9.1f}% {:>4.0f}% {:>6.2f} ", median * 100, coverage * 100,
                         mean(scores[band]));
    CHECK(median < most[band]);
    CHECK(coverage > 0.85);
    CHECK(coverage < 0.95);
  }
  fmt::print("{}\n", shown);
}

}  // namespace
}  // namespace lambcast::validate
