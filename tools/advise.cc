#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "experiments/advise/advice_list.h"
#include "experiments/advise/advice_output.h"
#include "experiments/sites/site_advice.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/forecast_flags.h"
#include "tools/patience.h"
#include "tools/terminal.h"
#include "topologies/sites/site_group.h"

namespace lambcast {
namespace {

struct AdviseOptions {
  ForecastFlags forecast;
  std::vector<std::string> scans, lists;
};

int advise_each(const AdviseOptions& options, Catalog& catalog) {
  const ForecastFlags& flags = options.forecast;
  if (!flags.trace.empty())
    fail_input({"", 0, "--trace"}, "traces one run, but --list or --scan gives several");
  if (!flags.explain.empty())
    fail_input({"", 0, "--explain"}, "explains one run, but --list or --scan gives several");
  std::vector<Axis> axes;
  for (const std::string& scan : options.scans) axes.push_back(parse_scan(scan));
  for (const std::string& list : options.lists) axes.push_back(parse_list(list));
  const AdviceList list = advise_all(flags.what_if, axes, catalog);
  print_result(flags.result,
               {[&] { return advice_list_text(list); }, [&] { return advice_list_json(list); },
                [&] { return advice_list_csv(list); }});
  return static_cast<int>(Exit::done);
}

int advise_for_sites(const AdviseOptions& options, Catalog& catalog) {
  const ForecastFlags& flags = options.forecast;
  const bool text = flags.result.format == "table" &&
                    std::ranges::all_of(flags.result.exports, [](const std::string& file) {
                      return file == "-" || file.ends_with(".txt");
                    });
  if (!options.scans.empty() || !options.lists.empty() || !flags.trace.empty() ||
      !flags.explain.empty() || !text)
    fail_input(
        {"", 0, "--cluster"},
        "describes several sites, for which advise prints one table: --list, --scan, --trace, "
        "--explain and --format do not apply",
        "none of them; lambcast sites has JSON and CSV");
  const SiteAdvice advice = advise_sites(flags.what_if, catalog);
  const auto table = [&] { return site_advice_table(advice); };
  print_result(flags.result, {table, table, table});
  return exit_code(flags, std::ranges::all_of(advice.forecast.sites, &SiteStep::fits));
}

int advise_command(const AdviseOptions& options) {
  const Patience patience("comparing backends");
  Catalog catalog;
  const auto cluster = options.forecast.what_if.find("cluster");
  if (cluster != options.forecast.what_if.end() && describes_sites(cluster->second))
    return advise_for_sites(options, catalog);
  if (!options.scans.empty() || !options.lists.empty()) return advise_each(options, catalog);
  const ForecastFlags& flags = options.forecast;
  refuse_output_beside_explanation(flags);
  const Advice advice = advise(flags.what_if, catalog);
  if (!flags.explain.empty()) {
    print_text(explain_advice(advice, flags.explain));
    return exit_code(flags, advice.answer.backends.front().fits);
  }
  return print_forecast(flags, advice.answer.scenario.training, advice.answer.backends.front().fits,
                        {[&] { return advice_text(advice); }, [&] { return advice_json(advice); },
                         [&] { return advice_csv(advice, catalog); }});
}

}  // namespace

Command add_advise(CLI::App& app) {
  auto options = std::make_shared<AdviseOptions>();
  CLI::App* command = app.add_subcommand(
      "advise", "does compression pay here: verdict, break-even bandwidth, backends, memory, cost");
  command
      ->add_option("--list", options->lists,
                   "advice for each value of a key: KEY=a,b,c; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--scan", options->scans,
                   "the same: KEY=FROM..TO (doubling) or KEY=low:high:step; may be repeated")
      ->allow_extra_args(false);
  add_forecast_flags(
      *command, options->forecast,
      {"table (the default), json, or csv: a row per implementation of the kernels and backend",
       "write one step per phase with the fastest backend as a Chrome trace (-: to stdout, alone; "
       "default: none)"});
  command
      ->add_option("--explain", options->forecast.explain,
                   "prints in place of the advice (default: the advice): what each backend changes "
                   "in a step and why some do not run, all exchanges, or the notes with remedies")
      ->check(CLI::IsMember(advice_explanation_names()))
      ->group("Output");
  command->footer(R"(Examples
  lambcast advise --config ds.json --model bert-large --cluster commodity-10gbe --gpus 32 --steps 7500
  lambcast advise --model bert-large --cluster commodity-100gbe --nodes 16 --optimizer onebit_lamb --micro-batch 16 \
    --steps 5993 --freeze-step 1000 --scan global_batch=2048..65536
  lambcast advise --cluster two-data-centres --model llama2-7b --zero-stage 3 --framework torchtitan --precision bf16 \
    --global-batch 256 --micro-batch 1 --optimizer adamw --steps 1000)");
  return [options] { return advise_command(*options); };
}

}  // namespace lambcast
