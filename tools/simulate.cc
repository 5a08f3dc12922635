#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "experiments/explain.h"
#include "experiments/forecast_output.h"
#include "experiments/result_row.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/output_file.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

struct Options {
  WhatIf what_if;
  std::string format = "table";
  std::string trace;
  std::string explain;
};

int simulate_command(const Options& options) {
  Catalog catalog;
  const Scenario scenario = resolve(options.what_if, catalog);
  if (!options.explain.empty()) {
    fmt::print("{}", explain(scenario.training, options.explain));
    return static_cast<int>(Exit::done);
  }
  CollectiveCosts costs;
  const Forecast result = forecast(scenario.training, costs);
  std::vector<Finding> findings = scenario.findings;
  const auto judged = judge(scenario.training, result);
  findings.insert(findings.end(), judged.begin(), judged.end());
  if (!options.trace.empty())
    write_output(options.trace, "--trace", chrome_trace(scenario.training));
  if (options.format == "json") {
    fmt::print("{}", forecast_json(scenario, result, findings));
  } else if (options.format == "csv") {
    fmt::print("{}\n{}\n", csv::row(result_columns()), csv::row(result_row(scenario, result)));
  } else {
    fmt::print("{}", forecast_table(scenario, result, findings));
  }
  return static_cast<int>(Exit::done);
}

}  // namespace

Command add_simulate(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("simulate", "one what-if: step and whole-run forecast");
  add_what_if_flags(*command, options->what_if);
  command->add_option("--format", options->format, "table, json or csv")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  command->add_option("--trace", options->trace, "write one step per stage as a Chrome trace");
  command
      ->add_option(
          "--explain", options->explain,
          "instead of the forecast: the plan of each step, the prices of its operations with "
          "what they rest on, or stats of the program's own work")
      ->check(CLI::IsMember(explanation_names()));
  command->footer(R"(Examples
  lambcast simulate --model bert-large --cluster paper-eth40-v100 --gpus 64 --optimizer onebit_lamb \
    --global-batch 65536 --micro-batch 16 --steps 5993 --freeze-step 1000
  lambcast simulate --config ds.json --model bert-large --cluster paper-edr100-v100 --gpus 128 \
    --format json --set cluster.nic.bandwidth=10Gbit/s)");
  return [options] { return simulate_command(*options); };
}

}  // namespace lambcast
