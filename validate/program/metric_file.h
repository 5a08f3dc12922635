// Steps in the files of metrics that trainers write next to their logs.
//
//   metrics.csv          CSVLogger of Lightning. Columns by preference: train_step_timing in s
//                        (NeMo), samples_per_sec (of all devices), device/samples_per_sec (written
//                        alone by a run on one device), tokens_per_sec_per_gpu,
//                        device/items_per_sec (tokens); a cell is empty where nothing was logged
//   trainer_state.json   Trainer of Transformers: train_samples_per_second of the last record, a
//                        mean of the whole run. It has no time of single steps
//
// A log may be compressed by gzip.
//
// Sources: Lightning fabric/loggers/csv_logs.py, fabric/utilities/throughput.py; NeMo
// utils/exp_manager.py; Transformers trainer_utils.py (speed_metrics).
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
};

struct LogRows {
  std::string program;
  Quantity quantity = Quantity::step_time_s;
  std::vector<LogRow> rows;
  bool whole_run = false;  // the last row is the mean of all steps
};

// Nothing if the text is another file. Throws Error (usage) for such a file without a step, and
// for one that is truncated.
std::optional<LogRows> read_metric_file(std::string_view text, const std::string& file);

// Returns the text of a file, unpacked. Throws Error (usage) as read_file() does, and for a gzip
// file that is truncated or too large.
std::string read_log_file(const std::string& path);

}  // namespace lambcast
