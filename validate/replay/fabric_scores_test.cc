#include "validate/replay/fabric_scores.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

// A row of 1 KiB with a measured time of 100 us, and a forecast of `us` within +-20 % on the given
// ground.
struct Forecast {
  double us;
  Ground ground;
};

CollectiveResult result_of(const std::string& cluster, const std::vector<Forecast>& forecasts) {
  CollectiveResult result;
  result.of.cluster = cluster;
  result.of.fitted = true;
  for (const auto& [us, ground] : forecasts) {
    const Duration time = Duration::microseconds(us);
    result.of.measured.rows.push_back({Bytes(1024), Duration::microseconds(100), {}});
    result.forecast.push_back(time);
    result.interval.push_back(
        {time.scaled(0.8), time.scaled(1.2), ground == Ground::calibrated, ground});
  }
  return result;
}

TEST_CASE("fabric scores: fabrics have equal weight, and grounds are separate") {
  const std::vector results{
      result_of("a", {{110, Ground::calibrated}, {110, Ground::calibrated}, {150, Ground::none}}),
      result_of("b", {{130, Ground::calibrated}})};
  const auto over = [&](std::optional<Ground> ground) {
    return over_fabrics(scores_by_fabric(results, ground), "fitted");
  };
  const FabricScore all = over({});
  CHECK(all.rows == 4);
  CHECK(all.bands[0]->median == Approx((0.1 + 0.3) / 2));
  CHECK(all.bands[0]->inside == Approx((2. / 3 + 0) / 2));
  CHECK_FALSE(all.bands[1].has_value());
  const FabricScore calibrated = over(Ground::calibrated);
  CHECK(calibrated.rows == 3);
  CHECK(calibrated.bands[0]->inside == Approx(0.5));
  const FabricScore none = over(Ground::none);
  CHECK(none.rows == 1);
  CHECK(none.bands[0]->median == Approx(0.5));
  CHECK(over(Ground::extrapolated).rows == 0);
  const std::string table = fabric_score_table(results);
  for (const char* line : {"\nover fabrics ", "\n  calibrated ", "\n  not calibrated "})
    CHECK(table.find(line) != std::string::npos);
  CHECK(table.find("extrapolated") == std::string::npos);
}

}  // namespace
}  // namespace lambcast
