// Step times in the log of a training program, recognised by content.
//
//   program              row                                         quantity
//   Megatron-LM, forks   elapsed time per iteration (ms) or (s): T   step time
//   MaxText              completed step: N, seconds: T               step time
//   NeMo                 train_step_timing in s: T                   step time
//   DeepSpeed pipelines  iter time (s): T                            step time
//   DeepSpeed            CurrSamplesPerSec=X, SamplesPerSec=X        samples per second of the job
//   torchtitan           step: N ... tps: X, wps: X                  tokens per second of a GPU
//   torchtune            tokens_per_second_per_gpu:X                 tokens per second of a GPU
//   Composer             throughput/device/tokens_per_sec: X         tokens per second of a GPU
//   OLMo                 throughput/device/tokens_per_second=X       tokens per second of a GPU
//   Hugging Face         'train_samples_per_second': X               mean of the whole run; also
//                                                                    in train_results.json
//   metrics.csv, trainer_state.json                                  metric_file.h
//
// A row may have any prefix (rank, time stamp) and ANSI colours. Steady rows are those that remain
// after
//   1. rows before the last start of the job, if its arguments mark it, rows with skipped
//      iterations, and rows of another global batch than the last row's,
//   2. the first five rows, which hold compilation and start-up (a fifth of fewer than 25 rows),
//   3. rows further from the median than 4 scaled median absolute deviations, or 2 % of it:
//      checkpoints and evaluations.
// With s the spread of n steady rows, the logarithm of their median has the standard error
// 1.25 s / sqrt(n), which widens the level that they set (level_fit.h).
// The first number counts if a row has two ("instant/mean").
//
// Sources: Megatron-LM megatron/training/training.py, bigscience tr11 chronicles, GPT-NeoX
// megatron/logging.py, DeepSpeed utils/timer.py and runtime/pipe/engine.py, torchtitan
// components/metrics.py, MaxText common/metric_logger.py, NeMo utils/exp_manager.py, Transformers
// trainer_utils.py.
//
// log_settings.h reads the configuration at the top of a log.
// Not modelled: TFLOP/s, which programs count in different ways.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "validate/program/log_settings.h"
#include "validate/program/metric_file.h"
#include "validate/replay/source.h"

namespace lambcast {

// Rows of a log that are not in its median, by the rules above.
struct StepsLeftOut {
  int earlier_starts = 0, skipped = 0, other_batches = 0, first = 0, outliers = 0;
};

// Returns the standard error of the median of n normal values, sqrt(pi / 2) of a mean's.
inline double standard_error_of_median(double spread, double n) {
  return 1.2533 * spread / std::sqrt(n);
}

struct TrainingLog {
  std::string program;
  Quantity quantity = Quantity::step_time_s;
  double median = 0;  // of the steady rows, in the quantity's unit
  double spread = 0;  // scaled median absolute deviation over the median
  int rows = 0;       // steady rows
  int left_out = 0;
  std::optional<std::int64_t> global_batch;
  int line = 0;  // line of the last row
  LogSettings settings;
  Counted counted = Counted::job;
  StepsLeftOut without{};
  bool whole_run = false;         // the row is a mean of the run
  std::int64_t steps_of_run = 0;  // 0: unknown
};

// Reads the steps of a log. Throws Error (usage) if the text holds no such row, or fewer than three
// steady ones.
TrainingLog read_training_log(std::string_view text, const std::string& file);

// Returns the settings of the log, with the batch of its last row.
LogSettings settings_of(const TrainingLog& log);

// Returns the log as a measured run of `what_if`. `filled` lists the settings taken from the log
// because the flags leave them open. Throws Error (usage) if flags and log contradict.
SourceFigure figure_of(const TrainingLog& log, const std::string& file, const WhatIf& what_if,
                       std::string& filled);

}  // namespace lambcast
