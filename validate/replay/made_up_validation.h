// MADE-UP results for tests of verdict, figures and page, with errors known by construction. They
// have the form of a validation but no meaning.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "validate/replay/verdict.h"

namespace lambcast {

// Returns a published figure of 100 ms whose forecast is `ratio` times that, +- 5 %.
inline ReplayResult made_up_case(const std::string& id, double ratio, bool fitted,
                                 double max_error) {
  ReplayResult result;
  result.of.id = id;
  result.of.table = fitted ? "paper.csv" : "blog.csv";
  result.of.what_if = {{"cluster", "box"}, {"model", "bert-large"}};
  result.of.stage = "uniform";
  result.of.quantity = "step_time_ms";
  result.of.measured = 100;
  result.of.fitted = fitted;
  result.of.max_error = max_error;
  result.forecast = 100 * ratio;
  result.error = ratio - 1;
  result.within = std::abs(result.error) <= max_error;
  result.low = result.forecast / 1.05;
  result.high = result.forecast * 1.05;
  return result;
}

// Returns two cases; medians and worst errors are 2 % (fitted) and 8 % (unseen).
inline ReplaySummary made_up_training() {
  ReplaySummary summary;
  summary.results = {made_up_case("calm", 1.02, true, 0.1), made_up_case("wild", 0.92, false, 0.1)};
  summary.median_error = 0.03;
  summary.worst_error = 0.08;
  summary.within = true;
  return summary;
}

// Returns a table of all-reduce over 8 ranks on 2 nodes: every row takes 1 us per KiB, and is
// forecast at `ratio` times that.
inline CollectiveResult made_up_table(const std::string& name, const std::string& cluster,
                                      const std::string& fabric, bool fitted, double ratio,
                                      const std::vector<double>& sizes) {
  CollectiveResult result;
  result.of.name = name;
  result.of.cluster = cluster;
  result.of.fitted = fitted;
  result.of.measured.ranks = 8;
  result.of.measured.nodes = 2;
  result.fabric = fabric;
  for (const double size : sizes) {
    const Duration time = Duration::microseconds(size / 1024);
    result.of.measured.rows.push_back({Bytes(size), time, std::nullopt});
    result.forecast.push_back(time.scaled(ratio));
    result.interval.push_back({time.scaled(ratio * 0.9), time.scaled(ratio * 1.1), fitted});
  }
  result.median_error = std::abs(ratio - 1);
  result.bands = validate::errors_by_band(sizes, std::vector<double>(sizes.size(), ratio - 1));
  return result;
}

// Returns two fitted rows below 64 KiB, whose forecasts are 12.5 % too slow, and two unseen rows
// above 4 MiB, whose forecasts are 25 % too fast. The limit applies only to the fitted table, on
// which NCCL's own model has a median error of 50 %.
inline CollectiveSummary made_up_collectives() {
  CollectiveSummary summary;
  summary.results = {
      made_up_table("seen.csv", "box", "InfiniBand", true, 1.125, {1024, 32768}),
      made_up_table("new.csv", "other-box", "Ethernet", false, 0.75, {0x1p23, 0x1p24})};
  summary.results[0].nccl_median = 0.5;
  const CollectiveLimit limit{"box", "", Bytes(0), Bytes(65536), 0.2, 0.3};
  summary.limits = {{limit, "box", 2, 0.125, 0.125, true}};
  summary.rows = 4;
  summary.rows_held = 2;
  summary.within = true;
  return summary;
}

}  // namespace lambcast
