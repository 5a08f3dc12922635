#include "validate/replay/log_replay.h"

#include <catch2/catch.hpp>

#include "experiments/temporary_folder.h"
#include "sim/base/file.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// A table whose every time is `factor` times the forecast of its cluster.
CollectiveSummary replay_of_multiple(double factor) {
  CollectiveCase carried = carried_collectives().front();
  const CollectiveSummary forecast = replay_collectives({carried}, {});
  for (std::size_t row = 0; row < carried.measured.rows.size(); ++row)
    carried.measured.rows[row].time = forecast.results[0].forecast[row].scaled(factor);
  return replay_collectives(log_cases({carried.measured}, "mine.log", carried.cluster, {}), {});
}

TEST_CASE("log replay: a log that is 9 times too slow is told so, and no limit is claimed") {
  const CollectiveSummary summary = replay_of_multiple(9);
  const std::string text = log_replay_table(summary);
  CHECK_THAT(text, Contains("takes 9 times what this description forecasts"));
  // measured / forecast - 1 = 8 in each row.
  CHECK_THAT(text, Contains("+800.0%") && Contains("outside") && Contains("unseen"));
  CHECK_THAT(collective_replay_table(summary),
             Contains("no limit applies") && !Contains("within limits"));
  CHECK_THAT(log_replay_table(replay_of_multiple(0.5)), Contains("takes 0.5 times what"));
  CHECK_THAT(log_replay_table(replay_of_multiple(1.02)),
             Contains("takes what this description forecasts, within 5 %"));
}

TEST_CASE("log replay: tables that a description was fitted to are never called unseen") {
  const CollectiveCase carried = carried_collectives().front();
  REQUIRE(carried.fitted);
  const auto role = [&](const validate::Measurement& table, const std::string& cluster) {
    return role_of(log_cases({table}, "mine.log", cluster, {}).front());
  };
  validate::Measurement other = carried.measured;
  for (validate::Row& row : other.rows) row.time = row.time * 2;
  CHECK(role(carried.measured, carried.cluster) == "fitted");
  CHECK(role(other, carried.cluster) == "unseen");
  // A calibration of the user's own, as `calibrate -o` writes it, is itself a base for the next.
  const TemporaryFolder folder;
  const auto calibrated = [&](const std::string& base, const validate::Measurement& table) {
    return validate::calibrated_cluster(base, "base.toml", "mine",
                                        validate::calibrate(base, "base.toml", {&table, 1}), "log");
  };
  const std::string mine =
      folder.file("mine.toml", calibrated(cluster_text(carried.cluster), other));
  CHECK(role(other, mine) == "fitted");
  CHECK(replay_collectives(log_cases({other}, "mine.log", mine, {}), {}).results.size() == 1);
}

}  // namespace
}  // namespace lambcast
