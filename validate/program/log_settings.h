// Settings of a run that the log of its program prints, compared with those that the user gives.
//
//   program                 where                                     settings
//   Megatron-LM, kin        "--- arguments ---", name .... value      all of an argument list,
//   model DeepSpeed               DeepSpeedEngine configuration, JSON       batch, ZeRO stage,
//   precision torchtitan              "Running with configs: {json}", its mesh  all of a job, GPUs
//   NeMo, Lightning         "name: value" of its YAML, its processes  layout, batch, model, GPUs
//   Hugging Face Trainer    "Total train batch size ... = N"          batch
//
// The lines of Megatron-LM and torchtitan are read as the argument list and the job file that they
// repeat (models/megatron/arguments.h, models/torchtitan/config.h). A setting that the user leaves
// open is filled from the log. One that contradicts a flag is refused with the line of the log.
//
// Sources: Megatron-LM training/arguments.py; DeepSpeed runtime/config.py; torchtitan trainer.py,
// distributed/parallel_dims.py; Lightning fabric/utilities/distributed.py; Transformers trainer.py.
// Left out: counts of parameters, and what follows the first megabytes of a log.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "validate/replay/source.h"

namespace lambcast {

struct LogSetting {
  std::string key, value;  // of a what-if
  std::string name;        // as the log calls it
  int line = 0;            // 0: unknown
};

struct LogSettings {
  std::vector<LogSetting> all;       // one of each key
  std::optional<std::string> model;  // its description, if the log holds one
  const LogSetting* find(std::string_view key) const;
};

// Throws Error (usage) with the line of the log for arguments that are not modelled.
LogSettings read_log_settings(std::string_view text, const std::string& file);

// Fills what the flags leave open, and returns the sentence that lists it. Throws Error (usage)
// if a flag contradicts the log.
std::string fill_from_log(const LogSettings& settings, const std::string& file,
                          SourceFigure& figure);

// Throws Error (usage) if the run of the flags and their files, as resolved, contradicts the log:
// GPUs, layout, batch, sequence length and sizes of the model.
void check_against_log(const LogSettings& settings, const std::string& file,
                       const SourceFigure& figure);

}  // namespace lambcast
