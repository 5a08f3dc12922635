#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <thread>

#include "experiments/search/layout_search_output.h"
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
};

int plan_command(const PlanOptions& options) {
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
  if (options.result.format == "table") add_faster_framework(options.what_if, search, texts, found);
  if (!found.complete) {
    complain("stopped before all layouts were forecast");
    return 128 + stop_signal();
  }
  print_result(options.result, {[&] { return layout_search_table(found); },
                                [&] { return layout_search_json(found); },
                                [&] { return layout_search_csv(found); }});
  if (!found.best.empty()) {
    Catalog catalog;
    print_findings({found.best.front().what_if}, catalog);
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
