#include "experiments/report/report.h"

#include <fmt/format.h>

#include <memory>

#include "experiments/sweep/result_parts.h"
#include "tools/commands.h"
#include "tools/stop_signal.h"
#include "tools/terminal.h"

namespace lambcast {

Command add_report(CLI::App& app) {
  auto folder = std::make_shared<std::string>();
  auto parts = std::make_shared<bool>(false);
  auto summary = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("report", "one HTML page and plot files from a results folder");
  command->add_option("DIR", *folder, "folder that sweep --out wrote")->required();
  command->add_flag(
      "--parts", *parts,
      "write parts.csv alone, results.csv in long form: a row for every part of a step");
  command->add_flag("--summary", *summary,
                    "print all sentences and speed-ups of the results, and write nothing");
  command->footer(R"(Example
  lambcast sweep bert_large --out results --no-report
  lambcast report results
  lambcast report results --parts)");
  return [folder, parts, summary] {
    if (*summary) {
      print_text(report::summary_text(report::read_results(*folder)));
      return 0;
    }
    if (*parts) {
      fmt::print("{}\n", write_parts(*folder).string());
      return 0;
    }
    report::refuse_foreign_page(*folder);
    const report::Results results = report::read_results(*folder);
    catch_stop_signals();
    const report::Paths paths =
        report::write_report(results, *folder, {.stopped = [] { return stop_signal() != 0; }});
    for (const std::string& message : paths.messages) say(message);
    if (paths.stopped) return 128 + stop_signal();
    fmt::print("{}\n", paths.page.string());
    for (const auto& plot : paths.plots) fmt::print("{}\n", plot.string());
    return 0;
  };
}

}  // namespace lambcast
