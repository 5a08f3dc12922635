// Sensitivity of a forecast to its inputs. Computes elasticities of the run time and of the
// speed-up by central differences in logarithms,
//
//   e = (ln T(x (1 + h)) - ln T(x (1 - h))) / (ln (1 + h) - ln (1 - h))
//
// so that 1 % more of x makes the run e % longer. Numbers of the cluster and the device change by h
// (numeric_inputs.h). GPUs, batch, micro batch and sequence length are doubled and halved; only one
// of the two is used if the other cannot run. A change of GPUs or micro batch keeps the global
// batch; a change of the global batch keeps the number of steps.
//
// An elasticity is local to this run: libraries choose algorithms by size, so it may jump
// elsewhere. It does not include the uncertainty of the input: an accurate input may have the
// largest elasticity. The uncertainty is reported next to it. The interval of a speed-up, or of a
// time, comes from independent sources of error (models/training/run/error_source.h). One
// measurement would settle each source. With r(s) the ratio of the interval's ends from source s
// alone,
//
//   share of s = ln(r(s))^2 / sum over all sources of ln(r)^2
//
// An input belongs to the source with the width that it changes most. It is unknown which inputs
// cause the error of a source. Its share is split among its inputs by their elasticities, as if all
// had the same relative error.
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
  std::optional<Provenance> provenance;  // absent for a choice of the user
  double time_elasticity = 0;
  // absent for runs that are not judged or do not compress
  std::optional<double> speedup_elasticity;
  std::optional<std::size_t> source;     // source of error; absent for choices
  std::optional<double> interval_share;  // absent if the source has no share
};

// A source of error, and the interval of the run from only this source.
struct IntervalPart {
  std::size_t source = 0;
  double time_share = 0, time_low_s = 0, time_high_s = 0;
  double speedup_share = 0, speedup_low = 0, speedup_high = 0;  // 0 if the run has no speed-up
};

struct Sensitivity {
  Scenario scenario;
  Forecast forecast;
  double by = 0;                     // relative change h of each number
  std::vector<InputEffect> effects;  // sorted by effect on the time, largest first
  std::vector<std::string> fixed;    // choices that cannot run with any other value
  Judgement judgement;
  std::vector<IntervalPart> parts;  // widest first, by the speed-up if it is judged

  // Returns whether the shares divide the interval of the speed-up; otherwise they divide the
  // interval of the time.
  bool of_speedup() const;
  double share(const IntervalPart& part) const;
  // Returns the widest part of the interval that a measurement can still narrow (measure_first.h),
  // or null.
  const IntervalPart* to_measure() const;
};

// Computes the sensitivity of a what-if. Throws Error (usage) as resolve() does.
Sensitivity sensitivity_of(const WhatIf& what_if, double by, Catalog& catalog);

// Elasticities of the time below this are noise from rounding to picoseconds.
inline constexpr double no_effect = 1e-6;

}  // namespace lambcast
