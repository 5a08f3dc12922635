// Reads the settings of a run from the log of its program.
//
//   program                where                                       settings
//   Megatron-LM, forks     "--- arguments ---", name .... value        all, with the model
//   DeepSpeed              DeepSpeedEngine configuration, its JSON     batch, ZeRO, precision
//   torchtitan             "Running with configs: {json}", its mesh    all, with GPUs
//   NeMo, Lightning        "name: value" of its YAML, its processes    layout, batch, GPUs
//   Hugging Face Trainer   "Total train batch size ... = N"            batch
//
// The lines of Megatron-LM and torchtitan are converted to an argument list and a job file, and
// read as such (models/megatron/arguments.h, models/torchtitan/config.h).
//
// Sources: Megatron-LM training/arguments.py; DeepSpeed runtime/config.py; torchtitan trainer.py,
// distributed/parallel_dims.py; Lightning fabric/utilities/distributed.py; Transformers trainer.py.
// Left out: counts of parameters, and everything after the first megabytes of a log.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

struct LogSetting {
  std::string key, value;  // key and value of a what-if
  std::string name;        // name in the log
  int line = 0;            // 0: unknown
  std::string also = {};   // another value that the log does not contradict
  bool fills = true;       // false: only compared with a flag
};

struct LogSettings {
  std::vector<LogSetting> all;       // one for each key
  std::optional<std::string> model;  // description of the model, if the log contains it
  // line at which the arguments of the job's last start begin; 0: unknown
  int begin = 0;
  // Samples per step, computed as samples over steps per second, and the relative error of that
  // number. 0: unknown.
  double samples_per_step = 0, samples_tolerance = 0;
  const LogSetting* find(std::string_view key) const;
};

// Throws Error (usage) with the line of the log for arguments that are not modelled, and for a log
// that contradicts itself: the sizes of its device mesh or layout do not divide its GPUs.
LogSettings read_log_settings(std::string_view text, const std::string& file);

}  // namespace lambcast
