// Errors of a program's steps beyond those of its kernels (models/device/rates_interval.h), from
// published rows that set no parameter; and the coverage of intervals.
//
//   build/validate/replay/source_test "[spread]"     also prints it without each source in turn
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "models/device/rates_interval.h"
#include "models/training/price/measured_program.h"
#include "models/training/price/slowest_rank.h"
#include "validate/calibrate/calibrate.h"
#include "validate/replay/source_replay.h"

namespace lambcast {
namespace {

// Returns, by source, the squares of log(measured / forecast) of unseen steps with a parallel
// layout, minus the variance of the kernels of their GPU.
std::map<std::string, std::vector<double>> excess_squares(const SourceSummary& summary) {
  std::map<std::string, std::vector<double>> excess;
  Catalog catalog(std::make_shared<DescriptionTexts>());
  for (const SourceResult& result : summary.results) {
    if (!result.ok() || result.of.fitted || result.of.quantity == Quantity::memory_gib) continue;
    const TrainingPlan training = resolve(result.of.what_if, catalog).training;
    if (!training.parallelism || !training.device->rates->held_out) continue;
    const double off = std::log1p(result.error);
    excess[result.of.source].push_back(off * off -
                                       kernel_variance(*training.device->rates->held_out));
  }
  return excess;
}

// Returns the spread, with equal weight for each source except `without`.
double spread_of(const std::map<std::string, std::vector<double>>& excess,
                 const std::string& without = "") {
  double sum = 0, sources = 0;
  for (const auto& [source, squares] : excess) {
    if (source == without) continue;
    double of_source = 0;
    for (const double square : squares) of_source += square;
    sum += of_source / static_cast<double>(squares.size());
    ++sources;
  }
  return std::sqrt(std::max(0.0, sum / sources));
}

TEST_CASE(
    "program spread: published rows have the error program_spread beyond that of their kernels") {
  const auto excess = excess_squares(replay_sources());
  CHECK(excess.size() == 27);
  CHECK(std::abs(spread_of(excess) - program_spread) < 0.002);
  for (const auto& [source, squares] : excess) {
    INFO(source);
    CHECK(spread_of(excess, source) > 0.035);
    CHECK(spread_of(excess, source) < 0.055);
  }
}

// Returns program and machine of a row: source, cluster, GPU and precision.
std::string stack_of(const SourceFigure& row) {
  std::string stack = row.source;
  for (const char* key : {"cluster", "device", "precision"})
    if (const auto said = row.what_if.find(key); said != row.what_if.end())
      stack += " " + said->second;
  return stack;
}

// Returns, by program and machine, the standard deviation of log(forecast / measured) of its runs
// about their mean.
std::map<std::string, double> spreads_of_runs(const SourceSummary& summary) {
  std::map<std::string, std::vector<double>> off;
  for (const SourceResult& result : summary.results) {
    if (!result.ok() || result.of.quantity == Quantity::memory_gib) continue;
    off[stack_of(result.of)].push_back(std::log1p(result.error));
  }
  std::map<std::string, double> spreads;
  for (const auto& [stack, runs] : off) {
    if (runs.size() < 3) continue;
    const auto count = static_cast<double>(runs.size());
    const double mean = std::accumulate(runs.begin(), runs.end(), 0.0) / count;
    double squares = 0;
    for (const double run : runs) squares += (run - mean) * (run - mean);
    spreads[stack] = std::sqrt(squares / (count - 1));
  }
  return spreads;
}

double median_of(const std::map<std::string, double>& spreads) {
  std::vector<double> values;
  for (const auto& [stack, spread] : spreads) values.push_back(spread);
  return validate::quantile(values, 0.5);
}

TEST_CASE("program spread: runs of one program deviate from its level by run_spread") {
  const auto spreads = spreads_of_runs(replay_sources());
  CHECK(spreads.size() > 30);
  CHECK(std::abs(median_of(spreads) - run_spread) < 0.003);
}

// How the errors of one program's runs drift with their number of GPUs: the slope of log(measured /
// forecast) over z, and its variance due to run_spread. z is the expected maximum of as many normal
// numbers as GPUs. Runs with more than 30 % exposed communication are left out, and programs with
// fewer than three runs or on fewer than 32 GPUs.
struct Drift {
  double slope = 0, variance = 0;
};

std::vector<Drift> drifts(const SourceSummary& summary) {
  struct Run {
    double largest = 0, off = 0;
    int gpus = 0;
  };
  std::map<std::string, std::vector<Run>> runs;
  Catalog catalog(std::make_shared<DescriptionTexts>());
  for (const SourceResult& result : summary.results) {
    if (!result.ok() || result.of.quantity == Quantity::memory_gib || result.exposed > 0.3)
      continue;
    const TrainingPlan training = resolve(result.of.what_if, catalog).training;
    const std::string program =
        fmt::format("{} {}", stack_of(result.of), framework_of_run(training));
    runs[program].push_back(
        {expected_largest_of(training.gpus), -std::log1p(result.error), training.gpus});
  }
  std::vector<Drift> found;
  for (const auto& [program, of] : runs) {
    const auto count = static_cast<double>(of.size());
    double largest = 0, off = 0, across = 0, together = 0;
    int most_gpus = 0;
    for (const Run& run : of) {
      largest += run.largest / count, off += run.off / count;
      most_gpus = std::max(most_gpus, run.gpus);
    }
    for (const Run& run : of) {
      across += (run.largest - largest) * (run.largest - largest);
      together += (run.largest - largest) * (run.off - off);
    }
    if (of.size() >= 3 && most_gpus >= 32 && across > 0.5)
      found.push_back({together / across, run_spread * run_spread / across});
  }
  return found;
}

// The mean drift is consistent with zero. Beyond their errors, the drifts have the standard
// deviation growth_spread.
TEST_CASE("program spread: steps drift with the number of GPUs by growth_spread, either way") {
  const std::vector<Drift> found = drifts(replay_sources());
  REQUIRE(found.size() > 25);
  double mean = 0, squares = 0;
  for (const Drift& drift : found) {
    mean += drift.slope / static_cast<double>(found.size());
    squares += (drift.slope * drift.slope - drift.variance) / static_cast<double>(found.size());
  }
  CHECK(std::abs(mean) < 0.015);
  CHECK(std::abs(std::sqrt(squares) - growth_spread) < 0.004);
}

TEST_CASE("program spread: 90 % intervals hold 90 % of all rows, and 80 % or more of each source") {
  const SourceSummary summary = replay_sources();
  CHECK(summary.all.inside >= 0.9 * summary.all.with_interval);
  CHECK(summary.coverage >= 0.9);
  for (const SourceScore& source : summary.sources) {
    if (source.time.with_interval == 0) continue;
    INFO(source.source);
    CHECK(source.time.inside >= 0.8 * source.time.with_interval);
  }
}

TEST_CASE("program spread: prints the spreads", "[.][spread]") {
  const auto excess = excess_squares(replay_sources());
  fmt::print("{} sources: {:.4f}\n", excess.size(), spread_of(excess));
  for (const auto& [source, squares] : excess)
    fmt::print("{:<26} {:>3} rows, without it {:.4f}\n", source, squares.size(),
               spread_of(excess, source));
  const auto spreads = spreads_of_runs(replay_sources());
  fmt::print("runs of {} programs and machines about their levels: median {:.4f}\n", spreads.size(),
             median_of(spreads));
  for (const auto& [stack, spread] : spreads) fmt::print("{:<60} {:.4f}\n", stack, spread);
}

}  // namespace
}  // namespace lambcast
