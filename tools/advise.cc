#include <fmt/format.h>

#include <memory>

#include "experiments/advice_output.h"
#include "experiments/result_row.h"
#include "experiments/sweep.h"
#include "sim/base/csv.h"
#include "tools/commands.h"
#include "tools/forecast_flags.h"
#include "tools/patience.h"

namespace lambcast {
namespace {

// A row per implementation of the kernels and backend, the fastest backend first, with the columns
// of simulate and sweep.
std::string advice_csv(const Advice& advice, Catalog& catalog) {
  CollectiveCosts costs;
  std::string out = csv::row(result_columns()) + "\n";
  const auto add = [&](const Answer& answer) {
    for (const BackendAdvice& backend : answer.backends)
      out += sweep_row(backend.asked, catalog, costs).text + "\n";
  };
  add(advice.answer);
  if (advice.fused) add(*advice.fused);
  return out;
}

int advise_command(const ForecastFlags& flags) {
  const Patience patience("comparing backends");
  Catalog catalog;
  const Advice advice = advise(flags.what_if, catalog);
  const std::string text = flags.format == "json"  ? advice_json(advice)
                           : flags.format == "csv" ? advice_csv(advice, catalog)
                                                   : advice_text(advice);
  return print_forecast(flags, advice.answer.scenario.training, advice.answer.backends.front().fits,
                        text);
}

}  // namespace

Command add_advise(CLI::App& app) {
  auto flags = std::make_shared<ForecastFlags>();
  CLI::App* command = app.add_subcommand(
      "advise", "does compression pay here: verdict, break-even bandwidth, backends, memory, cost");
  add_forecast_flags(*command, *flags,
                     {"table, json, or csv: a row per implementation of the kernels and backend",
                      "write one step per stage with the fastest backend as a Chrome trace (-: to "
                      "stdout, alone)"});
  command->footer(R"(Example
  lambcast advise --config ds.json --model bert-large --cluster commodity-10gbe --gpus 32 --steps 7500)");
  return [flags] { return advise_command(*flags); };
}

}  // namespace lambcast
