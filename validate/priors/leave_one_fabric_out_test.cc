#include <catch2/catch.hpp>
#include <cmath>

#include "validate/calibrate/calibrate.h"
#include "validate/priors/learn_priors.h"

namespace lambcast::validate {
namespace {

constexpr std::size_t bands = 3;

std::size_t band_of(Bytes size) {
  return size.value() < small_below ? 0 : size.value() < medium_below ? 1 : 2;
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

// Each RDMA fabric forecast from what the others teach, nothing of its own but its description.
TEST_CASE("priors: a fabric that nobody measured is forecast from the others") {
  const auto fabrics = fabrics_to_learn_from(LAMBCAST_VALIDATE);
  std::vector<double> medians[bands];
  std::vector<double> covered[bands];
  for (const LearningFabric& fabric : fabrics) {
    if (fabric.network != NetworkKind::rdma) continue;
    Priors others;
    others.rdma = learn_kind(fabrics, NetworkKind::rdma, fabric.name, shipped_priors().rdma, false);
    REQUIRE(others.rdma.fabrics == shipped_priors().rdma.fabrics - 1);
    std::vector<double> off[bands];
    double inside[bands] = {};
    for (const RowError& row : errors_under(fabric, others)) {
      const std::size_t band = band_of(row.size);
      off[band].push_back(std::abs(row.error));
      const auto interval = uncalibrated_interval(row.size, 16, NicRate::nominal, Typical::rdma,
                                                  Duration::microseconds(1e6));
      inside[band] += std::abs(row.error) <= std::log(interval.high.us() / 1e6);
    }
    for (std::size_t band = 0; band < bands; ++band) {
      if (off[band].empty()) continue;
      covered[band].push_back(inside[band] / static_cast<double>(off[band].size()));
      medians[band].push_back(std::expm1(quantile(off[band], 0.5)));
    }
  }
  const double most[] = {0.30, 0.35, 0.20};
  for (std::size_t band = 0; band < bands; ++band) {
    INFO("band " << band);
    double mean = 0;
    for (const double share : covered[band])
      mean += share / static_cast<double>(covered[band].size());
    CHECK(quantile(medians[band], 0.5) < most[band]);
    CHECK(mean > 0.85);
    CHECK(mean < 0.97);
  }
}

}  // namespace
}  // namespace lambcast::validate
