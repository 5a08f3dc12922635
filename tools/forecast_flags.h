// Flags common to simulate and advise: the what-if, the destination of the answer, and the exit
// code if the memory does not suffice.
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
  std::string explain;  // of simulate
  bool strict = false;
};

struct FlagHelp {
  const char* format;
  const char* trace;
};

// `flags` must outlive the parse.
void add_forecast_flags(CLI::App& command, ForecastFlags& flags, const FlagHelp& help);

// Returns the exit code of a limit if --strict is given and the memory does not suffice.
int exit_code(const ForecastFlags& flags, bool fits);

// Prints the answer, and the trace if one is requested; with --trace - stdout carries the trace
// alone. Returns the exit code.
int print_forecast(const ForecastFlags& flags, const TrainingPlan& training, bool fits,
                   const ResultTexts& texts);

}  // namespace lambcast
