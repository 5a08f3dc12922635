#include <fmt/format.h>

#include <memory>

#include "experiments/explain.h"
#include "experiments/forecast_output.h"
#include "experiments/result_row.h"
#include "sim/base/csv.h"
#include "tools/commands.h"
#include "tools/forecast_flags.h"
#include "tools/patience.h"

namespace lambcast {
namespace {

int simulate_command(const ForecastFlags& flags) {
  const Patience patience("simulating");
  Catalog catalog;
  const Scenario scenario = resolve(flags.what_if, catalog);
  if (!flags.explain.empty()) {
    fmt::print("{}", explain(scenario.training, flags.explain));
    return static_cast<int>(Exit::done);
  }
  CollectiveCosts costs;
  const Forecast result = forecast(scenario.training, costs);
  std::vector<Finding> findings = scenario.findings;
  const auto judged = judge(scenario.training, result);
  findings.insert(findings.end(), judged.begin(), judged.end());
  const std::string text = flags.format == "json" ? forecast_json(scenario, result, findings)
                           : flags.format == "csv"
                               ? fmt::format("{}\n{}\n", csv::row(result_columns()),
                                             csv::row(result_row(scenario, result)))
                               : forecast_table(scenario, result, findings);
  return print_forecast(flags, scenario.training, result.memory.fits, text);
}

}  // namespace

Command add_simulate(CLI::App& app) {
  auto flags = std::make_shared<ForecastFlags>();
  CLI::App* command = app.add_subcommand("simulate", "one what-if: step and whole-run forecast");
  add_forecast_flags(
      *command, *flags,
      {"table, json or csv", "write one step per stage as a Chrome trace (-: to stdout, alone)"});
  command
      ->add_option(
          "--explain", flags->explain,
          "instead of the forecast: the plan of each step, the prices of its operations with "
          "what they rest on, or stats of the program's own work")
      ->check(CLI::IsMember(explanation_names()));
  command->footer(R"(Examples
  lambcast simulate --model bert-large --cluster paper-eth40-v100 --gpus 64 --optimizer onebit_lamb \
    --global-batch 65536 --micro-batch 16 --steps 5993 --freeze-step 1000
  lambcast simulate --config ds.json --model bert-large --cluster paper-edr100-v100 --gpus 128 \
    --format json --set cluster.nic.bandwidth=10Gbit/s)");
  return [flags] { return simulate_command(*flags); };
}

}  // namespace lambcast
