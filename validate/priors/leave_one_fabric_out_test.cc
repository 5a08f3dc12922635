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
  const std::string text = priors_text(learn_priors(fabrics), fabrics);
  const Priors learned = decode_priors(Table::parse(text, "learned"));
  for (const LearningFabric& fabric : fabrics)
    CHECK(text.find('"' + fabric.name + '"') != std::string::npos);
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
  const Typical typical = fabric.network == NetworkKind::rdma ? Typical::rdma : Typical::socket;
  std::array<LeftOut, bands> all;
  for (const RowError& row : errors_under(fabric, others)) {
    const auto [low, high, calibrated, ground] =
        uncalibrated_interval(row.size, 16, NicRate::nominal, typical, Duration::microseconds(1e6));
    const double measured = std::exp(-row.error);
    LeftOut& band = all[band_of(row.size)];
    band.off.push_back(std::abs(row.error));
    band.inside += low.s() <= measured && measured <= high.s() ? 1 : 0;
    band.score += interval_score(low.s(), high.s(), measured);
  }
  return all;
}

// Over fabrics of one kind, each left out in turn and forecast from what the others teach, nothing
// of its own but its description.
struct OfBand {
  double median = 0, coverage = 0;
};

std::array<OfBand, bands> left_out_in_turn(NetworkKind network) {
  const auto fabrics = fabrics_to_learn_from(LAMBCAST_VALIDATE);
  std::vector<double> medians[bands], covered[bands], scores[bands];
  std::string shown = fmt::format("{:<26}{:^24}{:^24}{:^24}\n", "left out: median, in, score",
                                  "below 64 KiB", "to 4 MiB", "above");
  for (const LearningFabric& fabric : fabrics) {
    if (fabric.network != network) continue;
    Priors others;
    Priors::OfKind& kind = network == NetworkKind::rdma ? others.rdma : others.socket;
    kind = learn_kind(fabrics, network, fabric.name, shipped_priors().on(network), false);
    REQUIRE(kind.fabrics == shipped_priors().on(network).fabrics - 1);
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
  std::array<OfBand, bands> over;
  for (std::size_t band = 0; band < bands; ++band) {
    over[band] = {quantile(medians[band], 0.5), mean(covered[band])};
    shown += fmt::format("{:>9.1f}% {:>4.0f}% {:>6.2f} ", over[band].median * 100,
                         over[band].coverage * 100, mean(scores[band]));
  }
  fmt::print("{}\n", shown);
  return over;
}

TEST_CASE("priors: an RDMA fabric that nobody measured is forecast from the others") {
  const double most[] = {0.30, 0.35, 0.20};
  const auto over = left_out_in_turn(NetworkKind::rdma);
  for (std::size_t band = 0; band < bands; ++band) {
    INFO("band " << band);
    CHECK(over[band].median < most[band]);
    CHECK(over[band].coverage > 0.85);
    CHECK(over[band].coverage < 0.95);
  }
}

TEST_CASE("priors: a TCP fabric that nobody measured is forecast from the other one") {
  for (const OfBand& band : left_out_in_turn(NetworkKind::socket)) CHECK(band.coverage > 0.85);
}

}  // namespace
}  // namespace lambcast::validate
