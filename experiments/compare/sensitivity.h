// Which input moves the answer most? Elasticities of the run's time and of its speed-up by central
// differences in logarithms,
//
//   e = (ln T(x (1 + h)) - ln T(x (1 - h))) / (ln (1 + h) - ln (1 - h))
//
// so that one per cent more of x makes the run e per cent longer. Numbers of the cluster and the
// device move by h (numeric_inputs.h). What the user chooses moves as it can: GPUs, batch, micro
// batch and sequence are doubled and halved, one of the two where only one runs; GPUs and micro
// batch leave the global batch as it is, the global batch leaves the number of steps.
//
// An elasticity is of this run: libraries choose algorithms by size, so it may jump elsewhere. How
// far an input may be off is not in it: what is known well may move the answer most. That stands
// beside it. The interval of a speed-up, or of a time, comes from independent sources of error
// (models/training/run/error_source.h), each of which one measurement would settle; with r(s) the
// ratio of the ends that source s alone makes,
//
//   share of s = ln(r(s))^2 / sum over all sources of ln(r)^2
//
// and an input belongs to the source whose width it changes most. Which of its inputs a source errs
// by is not known: its share is split among them by their elasticities, as if each were off alike.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/output/judgement.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct InputEffect {
  std::string key, value;
  std::optional<Provenance> provenance;  // nothing: the user's choice
  double time_elasticity = 0;
  std::optional<double> speedup_elasticity;  // of runs that compress, and enough to be judged
  std::optional<std::size_t> source;         // of error; nothing for choices
  std::optional<double> interval_share;      // where the source has any
};

// A source of error, and what it alone makes of the run.
struct IntervalPart {
  std::size_t source = 0;
  double time_share = 0, time_low_s = 0, time_high_s = 0;
  double speedup_share = 0, speedup_low = 0, speedup_high = 0;  // 0 of runs without one
};

struct Sensitivity {
  Scenario scenario;
  Forecast forecast;
  double by = 0;                     // h
  std::vector<InputEffect> effects;  // the strongest on the time first
  std::vector<std::string> fixed;    // choices of which no other value runs
  Judgement judgement;
  std::vector<IntervalPart> parts;  // the widest first, of the speed-up where it is judged

  // Whether the answer is the speed-up; else it is the time.
  bool of_speedup() const;
  double share(const IntervalPart& part) const;
  // The part that makes most of the interval among those that the logs of the cluster do not hold
  // in full (measure_first.h); null if there is none.
  const IntervalPart* to_measure() const;
};

// Throws Error (usage) as resolve() does.
Sensitivity sensitivity_of(const WhatIf& what_if, double by, Catalog& catalog);

// What moves the time by less than this for each per cent is noise of rounding to picoseconds.
inline constexpr double no_effect = 1e-6;

}  // namespace lambcast
