#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "experiments/output/forecast_explanation.h"
#include "experiments/search/faster_framework.h"
#include "experiments/search/layout_search_output.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/input_findings.h"
#include "tools/progress.h"
#include "tools/result_flags.h"
#include "tools/stop_signal.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

struct PlanOptions {
  WhatIf what_if;
  ResultFlags result;
  int jobs = 0;
  int best = 10;
  bool every_setting = false;
  std::string explain;
};

// Prints what --explain names, instead of the answer.
void print_explanation(const PlanOptions& options, const LayoutSearch& found) {
  if (options.explain != "notes") return print_text(explain_layout_search(found, options.explain));
  Catalog catalog;
  if (!found.best.empty()) print_text(notes_text(findings_of(found.best.front().what_if, catalog)));
}

// Prints the findings of the best layout after the answer, those that fit a screen in full.
void print_brief_findings(const LayoutSearch& found) {
  Catalog catalog;
  FindingTally findings;
  findings.add(0, findings_of(found.best.front().what_if, catalog));
  print_findings(
      findings, [](std::size_t) { return std::string(); }, true);
}

int plan_command(const PlanOptions& options) {
  if (!options.explain.empty() &&
      (options.result.format != "table" || !options.result.exports.empty()))
    fail_input({"", 0, "--explain"}, "replaces the answer and is printed as text only",
               "no --export or --format");
  catch_stop_signals();
  Progress progress("layouts");
  SearchOptions search;
  search.jobs = options.jobs > 0
                    ? options.jobs
                    : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  search.best = static_cast<std::size_t>(options.best);
  search.every_setting = options.every_setting;
  search.progress = std::ref(progress);
  const auto texts = std::make_shared<DescriptionTexts>();
  LayoutSearch found = search_layouts(options.what_if, search, texts);
  if (options.result.format == "table" && options.explain.empty())
    add_faster_framework(options.what_if, search, texts, found);
  if (!found.complete) {
    complain("stopped before all layouts were forecast");
    return 128 + stop_signal();
  }
  if (!options.explain.empty()) {
    print_explanation(options, found);
    return static_cast<int>(found.best.empty() ? Exit::limit : Exit::done);
  }
  print_result(options.result, {[&] { return layout_search_table(found); },
                                [&] { return layout_search_json(found); },
                                [&] { return layout_search_csv(found); }});
  if (!found.best.empty()) {
    print_brief_findings(found);
    return static_cast<int>(Exit::done);
  }
  complain(fmt::format("none of {} layouts runs", found.candidates));
  return static_cast<int>(Exit::limit);
}

}  // namespace

Command add_plan(CLI::App& app) {
  auto options = std::make_shared<PlanOptions>();
  CLI::App* command = app.add_subcommand(
      "plan",
      "the best layouts for a model, cluster, number of GPUs and batch, and what "
      "compression makes of them");
  add_what_if_flags(*command, options->what_if);
  add_result_flags(*command, options->result);
  command->add_option("--best", options->best, "how many layouts to show (default: 10)")
      ->check(CLI::Range(1, 1000));
  command->add_flag("--every-setting", options->every_setting,
                    "all settings of a division (tp, cp, ep, pp), not its best one alone");
  command->add_option("--jobs", options->jobs, "threads (default: all cores)")
      ->check(CLI::Range(1, 1024));
  command
      ->add_option("--explain", options->explain,
                   "prints in place of the answer (default: the answer): all columns of the "
                   "layouts, why the others do not run (refused), or the notes with remedies")
      ->check(CLI::IsMember({"layouts", "refused", "notes"}));
  command->footer(
      R"(Searched are tp, cp, pp, ep, interleave, split of the layers, micro batch, ZeRO stage and recomputation, as far as the framework has them; a flag fixes the one it names, --dp what tp, cp and pp leave.
Examples
  lambcast plan --model llama2-70b --cluster dgx-a100-80g --gpus 128 --global-batch 512
  lambcast plan --model llama2-70b --cluster commodity-100gbe --gpus 128 --global-batch 512 \
    --framework megatron --precision bf16 --tp 8 --format csv
Exit codes: 0 a layout runs, 2 bad usage or input, 3 none does, 130/143 stopped by a signal.)");
  return [options] { return plan_command(*options); };
}

}  // namespace lambcast
