#include <memory>

#include "experiments/compare/sensitivity_figure.h"
#include "experiments/compare/sensitivity_output.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/input_findings.h"
#include "tools/patience.h"
#include "tools/result_flags.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

struct SensitivityOptions {
  WhatIf what_if;
  double by_percent = 5;
  SensitivityView view;
  ResultFlags result;
};

int sensitivity_command(const SensitivityOptions& options) {
  const Patience patience("moving every input");
  Catalog catalog;
  const Sensitivity found = sensitivity_of(options.what_if, options.by_percent / 100, catalog);
  print_result(options.result,
               {[&] { return sensitivity_table(found, options.view); },
                [&] { return sensitivity_json(found); }, [&] { return sensitivity_csv(found); },
                [&](const std::string& ending) {
                  return report::picture_of(sensitivity_figure(found), ending);
                }});
  print_findings({options.what_if}, catalog);
  return static_cast<int>(Exit::done);
}

}  // namespace

Command add_sensitivity(CLI::App& app) {
  auto options = std::make_shared<SensitivityOptions>();
  CLI::App* command = app.add_subcommand(
      "sensitivity", "which input moves the run's time and speed-up most: what to measure first");
  add_what_if_flags(*command, options->what_if);
  command->add_option("--by", options->by_percent,
                      "per cent that numbers are moved by, to both sides: 0.1 to 50 (default: 5)");
  command->add_flag("--all", options->view.all, "inputs that move nothing too");
  command->add_flag("--keys", options->view.keys,
                    "the key of each input in place of its name, as --set takes it");
  add_result_flags(*command, options->result, "table (the default), json or csv", true);
  command->footer(R"(Examples
  lambcast sensitivity --model bert-large --cluster commodity-10gbe --gpus 32 --optimizer onebit_lamb \
    --global-batch 65536 --micro-batch 16 --steps 5993 --freeze-step 1000 --export tornado.svg
  lambcast sensitivity --model llama2-7b --cluster hgx-h100-ndr --gpus 64 --zero-stage 3 --framework torchtitan \
    --precision bf16 --global-batch 256 --micro-batch 1 --optimizer adamw --steps 100 --format csv
Exit codes: 0 done, 2 bad usage or input.)");
  return [options] { return sensitivity_command(*options); };
}

}  // namespace lambcast
