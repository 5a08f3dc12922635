#include "validate/replay/collective_replay.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("collective replay: every shipped table is within its limit and beats NCCL's model") {
  const CollectiveSummary summary = replay_collectives(carried_collectives(), carried_limits());
  CHECK(summary.within);
  CHECK(summary.results.size() == 65);
  for (const CollectiveResult& result : summary.results) {
    INFO(result.of.name);
    CHECK(result.forecast.size() == result.of.measured.rows.size());
    // NCCL's model includes neither all-to-all nor MPI.
    const bool nccl = result.of.cluster != "emulated-ethernet-100mbit" &&
                      result.of.measured.operation != validate::Operation::all_to_all;
    CHECK(result.nccl_median.has_value() == nccl);
    if (nccl) CHECK(result.median_error < *result.nccl_median);
  }
  // Some of the tables were not used in a fit.
  CHECK(std::any_of(summary.results.begin(), summary.results.end(),
                    [](const auto& result) { return !result.of.fitted; }));
  const std::string text = collective_replay_table(summary);
  CHECK_THAT(text, Contains("on 51 of 51 tables") && Contains("65 tables: within limits"));
  // The text has the totals over all tables. `fabric` is the links between the ranks, or "inside a
  // node" for a table of one node.
  CHECK_THAT(text, Contains("over all 65 tables") && Contains("over all 5 unseen tables"));
  for (const CollectiveResult& result : summary.results) {
    INFO(result.of.name);
    CHECK(result.fabric != result.of.cluster);  // every shipped cluster is in fabrics.csv
    CHECK((result.fabric == "inside a node") == (result.of.measured.nodes == 1));
  }
}

// Fits the base description to `seen` and returns the forecasts of the other tables.
std::vector<CollectiveCase> kept_from_fit(const TemporaryFolder& folder, const std::string& base,
                                          const std::vector<validate::Measurement>& seen,
                                          std::vector<CollectiveCase> unseen) {
  const std::string text = read_file(fmt::format("{}/{}.toml", LAMBCAST_BASES, base));
  const std::string fitted = validate::calibrated_cluster(
      text, base, base + "-of-fewer", validate::calibrate(text, base, seen), "test");
  const std::string file = folder.file(base + "-of-fewer.toml", fitted);
  for (CollectiveCase& table : unseen) {
    table.cluster = file;
    table.fitted = false;
  }
  return unseen;
}

// Most shipped tables set parameters of their cluster. This test shows the accuracy elsewhere: a
// fit without any table of the largest number of nodes forecasts those tables.
TEST_CASE("collective replay: eight nodes of Perlmutter by a fit to one, two and four") {
  std::vector<validate::Measurement> seen;
  std::vector<CollectiveCase> unseen;
  for (CollectiveCase& carried : carried_collectives()) {
    if (carried.cluster != "perlmutter-a100") continue;
    if (carried.measured.nodes < 8)
      seen.push_back(std::move(carried.measured));
    else
      unseen.push_back(std::move(carried));
  }
  REQUIRE(seen.size() == 24);
  REQUIRE(unseen.size() == 9);
  const TemporaryFolder folder;
  unseen = kept_from_fit(folder, "perlmutter-a100", seen, std::move(unseen));
  // Use the limits for tables of the fit itself.
  std::vector<CollectiveLimit> limits;
  for (CollectiveLimit limit : carried_limits()) {
    if (limit.cluster != "perlmutter-a100") continue;
    limit.cluster = unseen.front().cluster;
    limits.push_back(limit);
  }
  REQUIRE(limits.size() == 2);
  const CollectiveSummary summary = replay_collectives(unseen, limits);
  INFO(collective_replay_table(summary));
  CHECK(summary.limits.size() == 2);
  CHECK(summary.within);
  const Coverage covered = coverage_of(summary.results, "unseen");
  CHECK(covered.inside >= 0.9 * covered.rows);
}

// With one table to fit, most latencies keep their assumed values. So forecasts for twice the nodes
// may be far off, and their intervals must show it. Rows below 16 MiB are left out of the forecast
// table: those of 1 to 8 MiB, with 317, 227, 231 and 239 us, are more noise than size.
TEST_CASE("collective replay: the intervals of a fit to one table hold at twice the nodes") {
  std::vector<validate::Measurement> seen;
  std::vector<CollectiveCase> unseen;
  for (CollectiveCase& carried : carried_collectives()) {
    if (carried.name == "allreduce_h100_2n16r_ibndr3200_nccltests309a.csv")
      seen.push_back(std::move(carried.measured));
    else if (carried.name == "allreduce_h100_4n32r_ibndr3200_nccltests309e.csv")
      unseen.push_back(std::move(carried));
  }
  REQUIRE(seen.size() == 1);
  REQUIRE(unseen.size() == 1);
  const TemporaryFolder folder;
  std::erase_if(unseen.front().measured.rows,
                [](const validate::Row& row) { return row.size < Bytes(16 << 20); });
  const CollectiveSummary summary =
      replay_collectives(kept_from_fit(folder, "hgx-h100-ndr", seen, std::move(unseen)), {});
  const Coverage covered = coverage_of(summary.results, "unseen");
  INFO(collective_replay_csv(summary));
  CHECK(covered.rows == 10);
  CHECK(covered.inside >= 9);
  for (const CalibratedInterval& interval : summary.results.front().interval)
    CHECK_FALSE(interval.calibrated);
}

TEST_CASE("collective replay: doubled times exceed their limit") {
  std::vector<CollectiveCase> cases = carried_collectives();
  cases.push_back(canary_collective());
  const CollectiveSummary summary = replay_collectives(cases, carried_limits());
  CHECK_FALSE(summary.within);
  CHECK_THAT(collective_replay_table(summary), Contains("PAST ITS LIMIT"));
}

TEST_CASE("collective replay: errors, bands and rows of a table with known times") {
  CollectiveCase replayed = carried_collectives().front();
  const CollectiveSummary before = replay_collectives({replayed}, {});
  // Measured times are half of the forecast in all rows except one, which is exact. So the median
  // error is |2 - 1| = 100 %.
  std::vector<validate::Row>& rows = replayed.measured.rows;
  for (std::size_t i = 0; i < rows.size(); ++i)
    rows[i].time = before.results[0].forecast[i].scaled(i == 0 ? 1 : 0.5);
  const CollectiveLimit generous{"*", "", Bytes(0), Bytes(1e30), 1.01, std::nullopt};
  const CollectiveLimit strict{replayed.cluster, "fitted", Bytes(0), Bytes(1e30), 1.01, 0.99};
  const CollectiveSummary after = replay_collectives({replayed}, {generous});
  CHECK(after.results[0].median_error == Approx(1));
  CHECK(after.within);
  CHECK_FALSE(replay_collectives({replayed}, {strict}).within);
  // The limit applies to all rows, and the limit below 1 B to none.
  CHECK(after.rows_held == static_cast<int>(rows.size()));
  CHECK(after.rows == after.rows_held);
  const CollectiveLimit none{"*", "", Bytes(0), Bytes(1), 1.01, std::nullopt};
  CHECK(replay_collectives({replayed}, {none}).rows_held == 0);
  // A cluster with its own limits is not subject to the general one.
  CHECK(replay_collectives({replayed}, {generous, strict}).limits.size() == 1);
  const std::string csv = collective_replay_csv(after);
  CHECK(std::count(csv.begin(), csv.end(), '\n') == static_cast<std::ptrdiff_t>(rows.size()) + 1);
}

}  // namespace
}  // namespace lambcast
