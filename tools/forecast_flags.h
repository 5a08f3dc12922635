// Flags common to simulate and advise: the what-if, the destination of the answer, and the exit
// code if memory is exceeded.
#pragma once

#include <string>

#include "models/training/plan/training_plan.h"
#include "tools/result_flags.h"
#include "tools/what_if_flags.h"

namespace lambcast {

struct ForecastFlags {
  WhatIf what_if;
  ResultFlags result;
  std::string trace;
  std::string explain;
  bool strict = false;
};

struct FlagHelp {
  const char* format;
  const char* trace;
};

// `flags` must outlive the parse.
void add_forecast_flags(CLI::App& command, ForecastFlags& flags, const FlagHelp& help);

// Throws Error (usage) if --explain is given with a flag that writes the answer in another form.
void refuse_output_beside_explanation(const ForecastFlags& flags);

// Returns the exit code of an exceeded limit if --strict is given and memory is exceeded.
int exit_code(const ForecastFlags& flags, bool fits);

// Prints the answer, and the trace if requested; with --trace - stdout contains only the trace.
// Returns the exit code.
int print_forecast(const ForecastFlags& flags, const TrainingPlan& training, bool fits,
                   const ResultTexts& texts);

}  // namespace lambcast
