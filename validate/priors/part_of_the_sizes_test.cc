#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "validate/calibrate/calibrate.h"
#include "validate/calibrate/measured_series.h"
#include "validate/priors/learn_priors.h"

namespace lambcast::validate {
namespace {

struct Sizes {
  double from, below;
  bool hold(const Row& row) const { return row.size.value() >= from && row.size.value() < below; }
};

// Median of |forecast / measured - 1| over the rows, and the share of rows inside their intervals.
struct Score {
  double median = 0, inside = 0;
};

std::optional<Score> score_on(const std::string& description, const LearningFabric& fabric,
                              const Sizes& sizes) {
  const Cluster cluster = decode_cluster(Table::parse(description, fabric.name), fabric.name);
  std::vector<double> errors;
  double inside = 0;
  for (const Measurement& table : fabric.tables) {
    MeasuredSeries series = series_of(table, cluster, Backend::nccl);
    const ProcessGroup group{series.ranks, series.gpus_per_node};
    for (const Row& row : table.rows) {
      if (!sizes.hold(row)) continue;
      const auto [time, by] = forecast(series, row.size);
      const CalibratedInterval interval =
          interval_of(cluster, Backend::nccl, series.parts.front().op, row.size, group, time, by);
      errors.push_back(std::abs(time / row.time - 1));
      inside += interval.low <= row.time && row.time <= interval.high ? 1 : 0;
    }
  }
  if (errors.empty()) return std::nullopt;
  return Score{quantile(errors, 0.5), inside / static_cast<double>(errors.size())};
}

std::string calibrated_on(const LearningFabric& fabric, const Sizes& sizes) {
  std::vector<Measurement> parts;
  for (Measurement table : fabric.tables) {
    std::erase_if(table.rows, [&](const Row& row) { return !sizes.hold(row); });
    if (!table.rows.empty()) parts.push_back(std::move(table));
  }
  if (parts.empty()) return {};
  const FitSummary summary = calibrate(fabric.description, fabric.name, parts);
  return calibrated_cluster(fabric.description, fabric.name, fabric.name, summary, "part");
}

// Scores on sizes that a calibration has not used, before and after it; all fabrics have equal
// weight.
struct Outcome {
  Score before, after;
};

Outcome outcome_of(const char* words, const Sizes& seen, const Sizes& unseen) {
  std::vector<double> before, after;
  Outcome over;
  for (const LearningFabric& fabric : fabrics_to_learn_from(LAMBCAST_VALIDATE)) {
    const auto untold = score_on(fabric.description, fabric, unseen);
    const std::string mine = calibrated_on(fabric, seen);
    if (!untold || mine.empty()) continue;
    const Score told = *score_on(mine, fabric, unseen);
    before.push_back(untold->median);
    after.push_back(told.median);
    over.before.inside += untold->inside;
    over.after.inside += told.inside;
  }
  REQUIRE(after.size() >= 15);
  const auto count = static_cast<double>(after.size());
  over.before = {quantile(before, 0.5), over.before.inside / count};
  over.after = {quantile(after, 0.5), over.after.inside / count};
  fmt::print("{}: median {:.1f} %, {:.0f} % inside; before {:.1f} %, {:.0f} %\n", words,
             over.after.median * 100, over.after.inside * 100, over.before.median * 100,
             over.before.inside * 100);
  return over;
}

constexpr double everything = 1e300, mebibyte = 1048576;

// The priors were learned from these fabrics, so the errors before a calibration are not held out.
// The test checks that a calibration hardly changes a band of sizes without data, and states its
// uncertainty.
TEST_CASE("priors: a table of large messages leaves small ones as they were") {
  const Outcome outcome =
      outcome_of("below 64 KiB, from 1 MiB up", {mebibyte, everything}, {0, small_below});
  CHECK(outcome.after.median < outcome.before.median + 0.05);
  CHECK(outcome.after.inside > 0.85);
  const Outcome medium =
      outcome_of("64 KiB to 1 MiB, from 1 MiB up", {mebibyte, everything}, {small_below, mebibyte});
  CHECK(medium.after.median < medium.before.median);
  CHECK(medium.after.inside > 0.85);
}

TEST_CASE("priors: a table of small messages leaves large ones as they were") {
  const Outcome outcome =
      outcome_of("4 MiB up, below 64 KiB", {0, small_below}, {medium_below, everything});
  CHECK(outcome.after.median < outcome.before.median + 0.05);
  CHECK(outcome.after.inside > 0.85);
}

}  // namespace
}  // namespace lambcast::validate
