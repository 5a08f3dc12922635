// Compares several clusters, optimizers or gradient exchanges, or every combination of them, for
// one question. Reports time, cost, memory, the effect of compression, and the part of a step that
// loses most.
//
// Each contestant is forecast as `simulate` forecasts it. Contestants that fit in memory rank
// before those that do not; within each group the shorter run time is first. If they train on
// different numbers of samples, they rank by the time for equal work (equal_work.h). Contestants
// that cannot run come last, with the reason. All ratios, also those for equal work, are relative
// to the contestant named first. A 1-bit optimizer has its own exchange, so it appears once; other
// optimizers appear once for each exchange.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/output/judgement.h"
#include "experiments/output/mean_step.h"
#include "experiments/scenario/scenario.h"
#include "experiments/verdict/equal_work.h"
#include "models/training/run/forecast.h"

namespace lambcast {

// The values to compare; an empty list keeps the value of the question.
struct ComparisonAxes {
  std::vector<std::string> clusters, optimizers, exchanges;
};

// Effect of 1-bit compression on a run: that of the 1-bit optimizer itself, or of the 1-bit form of
// a plain optimizer.
struct CompressionPays {
  std::string optimizer;
  std::optional<RatioInterval> speedup;  // absent if refused, or if hardly any step compresses
  std::string why_not;
  bool warmup_assumed = false;  // same meaning as in advice.h
  Verdict verdict = Verdict::not_judged;
  std::string measure_first;
  // speed-up with the fused kernels, if the question chooses no kernels
  std::optional<Speedup> fused;
};

struct Contestant {
  std::string name;     // values that distinguish it from the other contestants
  std::string refused;  // why it cannot run; if set, all fields below are unset
  Scenario scenario;
  Forecast forecast;
  MeanStep step;
  CompressionPays compression;
};

struct Comparison {
  std::vector<Contestant> ranked;
  std::size_t first_named = 0;  // index in `ranked` of the contestant that was named first
  bool clusters_differ = false;
  std::optional<std::int64_t> common_steps{};  // length of every run, if the question gives none
  EqualWork work;
  // Returns the factor that scales a contestant's time or cost to equal work.
  double share(const Contestant& contestant) const;
  const Contestant& reference() const { return ranked[first_named]; }
  // Returns how many times as long `slower` takes; nothing if one of them cannot run. Errors common
  // to both cancel, others add up (models/training/run/error_source.h).
  std::optional<RatioInterval> ratio(const Contestant& slower, const Contestant& faster) const;
  // Returns whether the best contestant runs and fits.
  bool answered() const;
};

// Throws Error (usage) for values that are invalid in every combination, and for fewer than two
// contestants.
Comparison compare(const WhatIf& what_if, const ComparisonAxes& axes, Catalog& catalog);

}  // namespace lambcast
