// Finds the value of one input that gives a target. Examples: how many GPUs at 90 % efficiency,
// which NIC for a run twice as fast, how late a freeze_step within two days.
//
// The metric (metric.h) is forecast at values spread evenly in logarithms over the range of the
// key. If it passes the target once, the interval is narrowed: whole numbers until no other value
// that runs lies between, others to 0.1 %. Three more values are forecast in the first such
// interval, to notice further passes. If the metric passes more than once, it is not monotone, and
// every place is shown. Turning points without a pass are reported too, since the answer holds only
// for the values forecast. Values that cannot run are left out.
//
// The key is one of a what-if (what_if.h), or a number of the cluster or the device
// (numeric_inputs.h). A number of the cluster is changed as by --set, one of the device alone. GPUs
// come in whole nodes. Two of the three batch numbers are kept if the third is solved for.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiments/output/metric.h"
#include "experiments/scenario/scenario.h"

namespace lambcast {

struct SolveQuestion {
  WhatIf what_if;
  std::string key;                       // "gpus", "cluster.nic.bandwidth"
  std::string metric, target;            // "efficiency", "90%"
  std::optional<std::string> low, high;  // ends of the key's range
};

// Parses "efficiency=90%" into metric and target. Throws Error (usage).
std::pair<std::string, std::string> parse_wanted(const std::string& text);

struct SolvePoint {
  double x = 0;
  std::string text;  // value of the key, as displayed
  MetricValue metric;
  bool meets = false;  // whether the metric's value meets the target
  bool fits = false;   // whether the run fits in memory
};

struct Solution {
  const Metric* metric = nullptr;
  double target = 0;
  std::string key;
  std::optional<std::int64_t> assumed_steps;  // length of every run, if the question gives none
  std::vector<SolvePoint> points;             // values that run, sorted
  // indices of the points before which the metric passes the target
  std::vector<std::size_t> passes;
  // indices of the points at which the metric begins to fall or to rise
  std::vector<std::size_t> turns;
  std::size_t cannot_run = 0;
  std::string why_not;              // error of the first value that cannot run
  std::vector<std::string> limits;  // limits of the metric, if no value meets the target
  // Values at which the low and the high end of the metric pass the target, the smaller value
  // first. A side that no value of the range reaches is absent.
  std::optional<std::pair<std::optional<std::string>, std::optional<std::string>>> within;

  enum class Kind { solved, always, never, not_monotone };
  Kind kind() const;
  // Returns whether the metric is the same at every value, within rounding.
  bool is_flat() const;
  // Returns the value with the best metric.
  const SolvePoint& best() const;
};

// Throws Error (usage) as resolve() does, for an unknown key or metric, and if no value runs.
Solution solve(const SolveQuestion& question, Catalog& catalog);

}  // namespace lambcast
