// What simulate and advise have in common: the what-if, where the answer goes, and whether one that
// does not fit is a failure.
#pragma once

#include <string>

#include "models/training/training_plan.h"
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

// That of a limit with --strict where the memory does not suffice.
int exit_code(const ForecastFlags& flags, bool fits);

// The trace, where one is asked for, and the answer; stdout is the trace's alone with
// --trace -. Returns the exit code.
int print_forecast(const ForecastFlags& flags, const TrainingPlan& training, bool fits,
                   const ResultTexts& texts);

}  // namespace lambcast
