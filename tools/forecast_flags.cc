#include "tools/forecast_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "experiments/output/trace.h"
#include "sim/base/error.h"
#include "sim/base/output_file.h"
#include "tools/terminal.h"

namespace lambcast {

void add_forecast_flags(CLI::App& command, ForecastFlags& flags, const FlagHelp& help) {
  add_what_if_flags(command, flags.what_if);
  const CLI::Option* format = add_result_flags(command, flags.result, help.format);
  command.add_option("--trace", flags.trace, help.trace)->type_name("FILE")->group("Output");
  command.add_flag("--strict", flags.strict, "exit with 3 where the run does not fit in memory")
      ->group("Output");
  command.parse_complete_callback([&flags, format] {
    if (flags.trace != "-") return;
    const bool exports = std::ranges::count(flags.result.exports, "-") > 0;
    if (format->count() > 0 || exports)
      fail_input({"", 0, "--trace"},
                 fmt::format("- is stdout, which {} already uses",
                             exports ? "--export -" : "--format " + flags.result.format),
                 "a file");
  });
}

void refuse_output_beside_explanation(const ForecastFlags& flags) {
  if (!flags.explain.empty() &&
      (!flags.trace.empty() || flags.result.format != "table" || !flags.result.exports.empty()))
    fail_input({"", 0, "--explain"}, "replaces the forecast and is printed as text only",
               "no --trace, --export or --format");
}

int exit_code(const ForecastFlags& flags, bool fits) {
  if (fits || !flags.strict) return static_cast<int>(Exit::done);
  complain("--strict: the run does not fit in memory");
  return static_cast<int>(Exit::limit);
}

int print_forecast(const ForecastFlags& flags, const TrainingPlan& training, bool fits,
                   const ResultTexts& texts) {
  const bool to_stdout = flags.trace == "-";
  if (!flags.trace.empty()) write_output(flags.trace, "--trace", chrome_trace(training));
  if (to_stdout)
    write_exports(flags.result, texts);
  else
    print_result(flags.result, texts);
  return exit_code(flags, fits);
}

}  // namespace lambcast
