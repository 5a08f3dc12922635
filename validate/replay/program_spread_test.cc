// Errors of a program's steps beyond its kernels (models/device/rates_interval.h), from published
// rows that set no parameter, and the coverage of intervals.
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
#include "validate/calibrate/calibrate.h"
#include "validate/replay/source_replay.h"

namespace lambcast {
namespace {

// By source: the squares of log(measured / forecast) of steps under a layout, less the variance of
// their GPU's generation.
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

// Each source alike, `without` one.
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

TEST_CASE("program spread: published rows are off by it beyond their kernels") {
  const auto excess = excess_squares(replay_sources());
  CHECK(excess.size() == 27);
  CHECK(std::abs(spread_of(excess) - program_spread) < 0.002);
  for (const auto& [source, squares] : excess) {
    INFO(source);
    CHECK(spread_of(excess, source) > 0.035);
    CHECK(spread_of(excess, source) < 0.055);
  }
}

// By program and machine (source, cluster, GPU and precision): the standard deviation of
// log(forecast / measured) of its runs about their mean.
std::map<std::string, double> spreads_of_runs(const SourceSummary& summary) {
  std::map<std::string, std::vector<double>> off;
  for (const SourceResult& result : summary.results) {
    if (!result.ok() || result.of.quantity == Quantity::memory_gib) continue;
    std::string stack = result.of.source;
    for (const char* key : {"cluster", "device", "precision"})
      if (const auto said = result.of.what_if.find(key); said != result.of.what_if.end())
        stack += " " + said->second;
    off[stack].push_back(std::log1p(result.error));
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

TEST_CASE("program spread: runs of one program lie about its level by run_spread") {
  const auto spreads = spreads_of_runs(replay_sources());
  CHECK(spreads.size() > 30);
  CHECK(std::abs(median_of(spreads) - run_spread) < 0.003);
}

TEST_CASE("program spread: intervals of 90 % hold as many rows, and as many of most sources") {
  const SourceSummary summary = replay_sources();
  CHECK(summary.all.inside >= 0.9 * summary.all.with_interval);
  CHECK(summary.coverage >= 0.9);
  for (const SourceScore& source : summary.sources) {
    if (source.time.with_interval == 0) continue;
    INFO(source.source);
    CHECK(source.time.inside >= 0.8 * source.time.with_interval);
  }
}

TEST_CASE("program spread: prints it", "[.][spread]") {
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
