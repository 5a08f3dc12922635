// A whole run: its phases, the pauses between their steps, the cost of failures, and the steps
// skipped in fp16.
//
//   phases    Each is the what-if of the previous one with some keys changed: BERT's pre-training
//             has sequences of 128 at batch 65,536, then of 512 at 32,768. A phase loads the
//             checkpoint of the previous one, which holds the step count. So its freeze_step counts
//             from the first step of the run: 6100 after 5,993 steps warms up for 106 more. Error
//             feedback starts at zero in each phase.
//   pauses    Start-up, once per phase (the job starts, data and weights are loaded, kernels are
//             built), and evaluations at an interval of steps. MLPerf's time to train counts both.
//   failures  With a mean time M between failures of the whole job, a checkpoint of C seconds every
//             k steps of s seconds, and R seconds to restart, work of T seconds takes
//
//                 T (1 + C / (k s)) / (1 - (R + (k s + C) / 2) / M)
//
//             in the mean (Young 1974, Daly 2006, first order): half an interval is lost each time.
//             Evaluations are part of T and s. Checkpoints without failures cost T C / (k s). After
//             a failure a 1-bit optimizer loads a checkpoint, drops the error feedback, and
//             continues in the stage given by the step count.
//   interval  The ends of a run are the sums of the ends of its phases, since the errors of phases
//             are fully correlated. Each source of error is summed on its own too
//             (models/training/run/error_source.h), and the speed-up is the ratio of two such sums:
//             errors common to both runs cancel. Skipped steps have the errors of counted ones.
//   skipped   Steps discarded by dynamic loss scaling (skipped_steps.h), in addition to the counted
//             steps: forward and backward passes and the gradient reduction. One per window unless
//             a log has counted them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

namespace lambcast {

struct Failures {
  std::optional<Duration> between;  // mean time, of the whole job; without: checkpoints alone
  std::int64_t checkpoint_steps;    // from one checkpoint to the next
  Duration checkpoint;              // to write one
  Duration restart;                 // from the failure to the first step
};

// Pauses between the steps of a run.
struct Pauses {
  Duration startup{};                 // from a phase's start to its first step
  std::int64_t evaluation_steps = 0;  // from one evaluation to the next; 0: none
  Duration evaluation{};
  std::optional<Failures> failures{};
  std::int64_t skipped_steps = 0;  // by dynamic loss scaling, of each phase; 0: one a window
};

// The same as flags or Python arguments; empty: not given.
struct PauseWords {
  std::string mtbf{}, checkpoint_time{}, restart_time{}, startup_time{}, evaluation_time{};
  std::int64_t checkpoint_every = 0, evaluate_every = 0, skipped_steps = 0;

  bool operator==(const PauseWords&) const = default;
  bool any() const { return *this != PauseWords(); }
};

// Throws Error (usage) naming the flag, also for one without effect.
Pauses parse_pauses(const PauseWords& words);

struct RunPhase {
  Scenario scenario;
  Forecast forecast;
  double skipped_steps = 0, skipped_s = 0;
  double startup_s = 0, evaluations = 0, evaluations_s = 0;
  double failures = 0, failures_s = 0;  // expected; checkpoints written included

  double time_s() const {
    return startup_s + forecast.run.time_s + skipped_s + evaluations_s + failures_s;
  }
};

struct PhasedRun {
  std::vector<RunPhase> phases;
  std::int64_t steps = 0;
  double time_s = 0, skipped_s = 0, failures_s = 0, failures = 0, gpu_hours = 0;
  double startup_s = 0, evaluations_s = 0;
  double time_low_s = 0, time_high_s = 0;
  std::optional<double> cost_usd, cost_low_usd, cost_high_usd;
  // The same phases with the plain optimizer of the same family, failures included; where they all
  // run it anyway there is no interval.
  double speedup_vs_baseline = 1;
  std::optional<RatioInterval> speedup;
  std::vector<Finding> findings;
};

// `then` are the phases after the first, each "KEY=VALUE KEY=VALUE ...". Throws Error (usage), also
// where failures come so often that no run ends.
PhasedRun forecast_phases(const WhatIf& first, const std::vector<std::string>& then,
                          const Pauses& pauses, Catalog& catalog);

std::string phased_run_table(const PhasedRun& run);
std::string phased_run_json(const PhasedRun& run);

}  // namespace lambcast
