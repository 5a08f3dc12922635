#include "experiments/advice.h"

#include <fmt/format.h>

#include <memory>

#include "experiments/forecast_output.h"
#include "experiments/result_row.h"
#include "experiments/sweep.h"
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
};

// A row per backend, the fastest first, with the columns of simulate and sweep.
std::string advice_csv(const Advice& advice, Catalog& catalog) {
  CollectiveCosts costs;
  std::string out = csv::row(result_columns()) + "\n";
  for (const BackendAdvice& backend : advice.backends)
    out += sweep_row(backend.asked, catalog, costs) + "\n";
  return out;
}

int advise_command(const Options& options) {
  Catalog catalog;
  const Advice advice = advise(options.what_if, catalog);
  if (!options.trace.empty())
    write_output(options.trace, "--trace", chrome_trace(advice.scenario.training));
  fmt::print("{}", options.format == "json"  ? advice_json(advice)
                   : options.format == "csv" ? advice_csv(advice, catalog)
                                             : advice_text(advice));
  return static_cast<int>(Exit::done);
}

}  // namespace

Command add_advise(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "advise", "does compression pay here: verdict, break-even bandwidth, backends, memory, cost");
  add_what_if_flags(*command, options->what_if);
  command->add_option("--format", options->format, "table, json, or csv: a row per backend")
      ->check(CLI::IsMember({"table", "json", "csv"}));
  command->add_option("--trace", options->trace,
                      "write one step per stage with the fastest backend as a Chrome trace");
  command->footer(R"(Example
  lambcast advise --config ds.json --model bert-large --cluster commodity-10gbe --gpus 32 --steps 7500)");
  return [options] { return advise_command(*options); };
}

}  // namespace lambcast
