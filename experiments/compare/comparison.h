// Which of these is best? One question asked of several clusters, optimizers or exchanges of
// gradients, or of every combination of them, side by side: time, cost, memory, what compression
// makes of each, and which part of a step loses most.
//
// Each is forecast as `simulate` forecasts it. Best first means: those that fit in memory before
// those that do not, each by the time of the run, or for equal work where they train on unequal
// numbers of samples (equal_work.h); last what cannot run, with the reason. Ratios are against the
// first one named, for equal work too. 1-bit optimizers bring an exchange of their own, so they
// stand once beside the exchanges of plain ones.
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

// What is compared; an empty list leaves what the question says.
struct ComparisonAxes {
  std::vector<std::string> clusters, optimizers, exchanges;
};

// What 1-bit compression makes of a run: of a 1-bit optimizer itself, of a plain one its 1-bit kin.
struct CompressionPays {
  std::string optimizer;
  std::optional<RatioInterval> speedup;  // nothing: refused, or hardly any step compresses
  std::string why_not;
  bool warmup_assumed = false;  // as in advice.h
  Verdict verdict = Verdict::not_judged;
  std::string measure_first;
  std::optional<Speedup> fused;  // with the fused kernels, where nobody chose kernels
};

struct Contestant {
  std::string name;     // the values it does not share with the others
  std::string refused;  // why it cannot run; then nothing below is set
  Scenario scenario;
  Forecast forecast;
  MeanStep step;
  CompressionPays compression;
};

struct Comparison {
  std::vector<Contestant> ranked;
  std::size_t first_named = 0;  // its place among `ranked`
  bool clusters_differ = false;
  std::optional<std::int64_t> common_steps{};  // of every run, if no length is given
  EqualWork work;
  // What makes of a contestant's time, or cost, that of the work compared.
  double share(const Contestant& contestant) const;
  const Contestant& reference() const { return ranked[first_named]; }
  // How many times as long `slower` takes; nothing where one of them cannot run. Errors that both
  // share cancel, others add up (models/training/run/error_source.h).
  std::optional<RatioInterval> ratio(const Contestant& slower, const Contestant& faster) const;
  // Whether the best one runs and fits.
  bool answered() const;
};

// Throws Error (usage) for what no combination can be asked with, and for fewer than two.
Comparison compare(const WhatIf& what_if, const ComparisonAxes& axes, Catalog& catalog);

}  // namespace lambcast
