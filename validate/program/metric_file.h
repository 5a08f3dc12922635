// Steps in the files of metrics that trainers write next to their logs.
//
//   metrics.csv          CSVLogger of Lightning. Columns by preference: train_step_timing in s
//                        (NeMo), samples_per_sec, device/samples_per_sec, tokens_per_sec_per_gpu,
//                        device/items_per_sec (tokens), batches_per_sec (micro batches),
//                        device/batches_per_sec. The separator may be |, and the callback of the
//                        trainer puts train/ in front. A cell is empty if nothing was logged
//   trainer_state.json   Trainer of Transformers: train_samples_per_second of the last record, a
//                        mean of the whole run. It has no time of single steps
//
// Lightning counts the samples of one rank, and multiplies by the number of ranks for columns
// without device/. Ranks that divide a model read the same samples, so with N GPUs and dp replicas
// the rate of the job is dp times that of a rank, or dp / N times Lightning's total.
//
// A log may be compressed by gzip.
//
// Sources: Lightning fabric/loggers/csv_logs.py, fabric/utilities/throughput.py,
// pytorch/callbacks/throughput_monitor.py; NeMo utils/exp_manager.py; Transformers trainer_utils.py
// (speed_metrics).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/source.h"

namespace lambcast {

struct LogRow {
  double value = 0;    // in the unit of the quantity
  double skipped = 0;  // iterations without an update
  std::optional<std::int64_t> global_batch;
  int line = 0;
  double steps_per_s = 0;  // 0: not stated
  double steps = 0;        // number of steps in a mean; 0: unknown
};

// Meaning of the rate in a row.
enum class Counted {
  job,            // quantity of the whole job
  rank,           // samples of one rank
  ranks,          // samples of all ranks, or tokens of a rank, as if no ranks read the same samples
  rank_batches,   // micro batches of one rank
  ranks_batches,  // micro batches of all ranks
};

struct LogRows {
  std::string program;
  Quantity quantity = Quantity::step_time_s;
  std::vector<LogRow> rows;
  bool whole_run = false;  // whether the last row is the mean of all steps
  Counted counted = Counted::job;
};

// Reads a metric file; returns nothing if the text is another kind of file. Throws Error (usage)
// for one without a step, and for one that is truncated.
std::optional<LogRows> read_metric_file(std::string_view text, const std::string& file);

// Returns the text of a file, unpacked. Throws Error (usage) as read_file() does, and for a gzip
// file that is truncated or too large.
std::string read_log_file(const std::string& path);

}  // namespace lambcast
