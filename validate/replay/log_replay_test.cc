#include "validate/replay/log_replay.h"

#include <fmt/format.h>
#include <catch2/catch.hpp>

#include "sim/base/file.h"
#include "sim/base/temporary_folder.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// Replays a table with `factor` times the forecast times of its cluster.
CollectiveSummary replay_of_multiple(double factor) {
  CollectiveCase carried = carried_collectives().front();
  const CollectiveSummary forecast = replay_collectives({carried}, {});
  for (std::size_t row = 0; row < carried.measured.rows.size(); ++row)
    carried.measured.rows[row].time = forecast.results[0].forecast[row].scaled(factor);
  return replay_collectives(log_cases({carried.measured}, "mine.log", carried.cluster, {}), {});
}

TEST_CASE("log replay: a log that is 9 times too slow is reported, and no limit is claimed") {
  const CollectiveSummary summary = replay_of_multiple(9);
  const std::string text = log_replay_table(summary);
  CHECK_THAT(text, Contains("takes 9 times what this description forecasts"));
  // In each row forecast / measured - 1 = 1/9 - 1.
  CHECK_THAT(text, Contains("-88.9%") && Contains("outside") && Contains("unseen"));
  CHECK_THAT(collective_replay_table(summary),
             Contains("no limit applies") && !Contains("within limits"));
  CHECK_THAT(log_replay_table(replay_of_multiple(0.5)), Contains("is 2 times as fast as"));
  CHECK_THAT(log_replay_table(replay_of_multiple(1.02)),
             Contains("takes what this description forecasts, within 5 %"));
}

TEST_CASE("log replay: rows that a description was fitted to are never called unseen") {
  const CollectiveCase carried = carried_collectives().front();
  REQUIRE(carried.fitted);
  const auto roles = [&](const validate::Measurement& table, const std::string& cluster) {
    std::string text;
    for (const CollectiveCase& of : log_cases({table}, "mine.log", cluster, {}))
      text += fmt::format("{} {} ", of.measured.rows.size(), role_of(of));
    return text;
  };
  const std::size_t all = carried.measured.rows.size();
  const std::string fitted = fmt::format("{} fitted ", all),
                    unseen = fmt::format("{} unseen ", all);
  validate::Measurement other = carried.measured;
  for (validate::Row& row : other.rows) row.time = row.time * 2;
  CHECK(roles(carried.measured, carried.cluster) == fitted);
  CHECK(roles(other, carried.cluster) == unseen);

  // A copy of the preset under another name, and an edited copy.
  const TemporaryFolder folder;
  const std::string preset = cluster_text(carried.cluster);
  const std::string renamed = "name = 'mine'\n" + preset.substr(preset.find('\n') + 1) +
                              "\n[host_copy]\nstaged_by_mpi = '6 GB/s'\n";
  CHECK(roles(carried.measured, folder.file("renamed.toml", renamed)) == fitted);
  CHECK(roles(carried.measured, "paper-eth40-v100") == unseen);

  // A calibration as written by `calibrate -o` was fitted to its own rows and to those of its base.
  const std::string mine = folder.file(
      "mine.toml",
      validate::calibrated_cluster(preset, "base.toml", "mine",
                                   validate::calibrate(preset, "base.toml", {&other, 1}), "log"));
  CHECK(roles(other, mine) == fitted);
  CHECK(roles(carried.measured, mine) == fitted);
  CHECK(replay_collectives(log_cases({other}, "mine.log", mine, {}), {}).results.size() == 1);

  // A part of the log, and a log with one more row.
  validate::Measurement part = other;
  part.rows.pop_back();
  CHECK(roles(part, mine) == fmt::format("{} fitted ", all - 1));
  part.rows.back().time = part.rows.back().time * 2;
  CHECK(roles(part, mine) == fmt::format("{} fitted 1 unseen ", all - 2));
}

}  // namespace
}  // namespace lambcast
