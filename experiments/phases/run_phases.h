// A whole run: its phases, the pauses between their steps, the cost of failures, and the steps
// skipped in fp16.
//
//   phases    Each is the what-if of the previous one with some keys changed: BERT's pre-training
//             has sequences of 128 at batch 65,536, then of 512 at 32,768. A phase loads the
//             checkpoint of the previous one, which holds the step count. So its freeze_step counts
//             from the first step of the run: 6100 after 5,993 steps means a warm-up of 106 more.
//             Error feedback starts at zero in each phase.
//   pauses    Start-up, once per phase (the job starts, data and weights are loaded, kernels are
//             built), and evaluations at an interval of steps. MLPerf's time to train counts both.
//   failures  With a mean time M between failures of the whole job, a checkpoint of C seconds every
//             k steps of s seconds, and R seconds to restart, work of T seconds takes
//
//                 T (1 + C / (k s)) / (1 - (R + (k s + C) / 2) / M)
//
//             on average (Young 1974, Daly 2006, first order): each failure loses half an interval.
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
  // mean time between failures of the whole job; absent: only checkpoints count
  std::optional<Duration> between;
  std::int64_t checkpoint_steps;  // steps from one checkpoint to the next
  Duration checkpoint;            // time to write a checkpoint
  Duration restart;               // time from the failure to the first step
};

// Pauses between the steps of a run.
struct Pauses {
  Duration startup{};                 // time from a phase's start to its first step
  std::int64_t evaluation_steps = 0;  // steps from one evaluation to the next; 0: none
  Duration evaluation{};
  std::optional<Failures> failures{};
  // steps skipped by dynamic loss scaling in each phase; 0: one per window
  std::int64_t skipped_steps = 0;
};

// The values of Pauses as text, from flags or Python arguments; empty: not given.
struct PauseWords {
  std::string mtbf{}, checkpoint_time{}, restart_time{}, startup_time{}, evaluation_time{};
  std::int64_t checkpoint_every = 0, evaluate_every = 0, skipped_steps = 0;

  bool operator==(const PauseWords&) const = default;
  bool any() const { return *this != PauseWords(); }
};

// Parses the pauses. Throws Error (usage) naming the flag, also for a flag without effect.
Pauses parse_pauses(const PauseWords& words);

struct RunPhase {
  Scenario scenario;
  Forecast forecast;
  double skipped_steps = 0, skipped_s = 0;
  double startup_s = 0, evaluations = 0, evaluations_s = 0;
  // expected number of failures and the time lost, including checkpoints
  double failures = 0, failures_s = 0;

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
  // Speed-up over the same phases with the plain optimizer of the same family, failures included.
  // The interval is absent if all phases run the plain optimizer.
  double speedup_vs_baseline = 1;
  std::optional<RatioInterval> speedup;
  std::vector<Finding> findings;
};

// Forecasts a run of several phases. `then` lists the phases after the first, each "KEY=VALUE
// KEY=VALUE ...". Throws Error (usage), also if failures are so frequent that no run ends.
PhasedRun forecast_phases(const WhatIf& first, const std::vector<std::string>& then,
                          const Pauses& pauses, Catalog& catalog);

std::string phased_run_table(const PhasedRun& run);
std::string phased_run_json(const PhasedRun& run);

}  // namespace lambcast
