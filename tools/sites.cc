#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>

#include "experiments/sites/site_forecast.h"
#include "experiments/sites/site_study.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/result_flags.h"
#include "tools/terminal.h"
#include "tools/what_if_flags.h"

namespace lambcast {
namespace {

constexpr std::string_view all_studies = "all";

struct SitesOptions {
  WhatIf what_if;
  OuterChoice choice;
  ResultFlags result;
  std::string study;
};

// Throws Error (usage) for any other flag next to --study, since the study has its own runs.
void refuse_next_to_study(const CLI::App& command) {
  for (const CLI::Option* option : command.get_options())
    if (option->count() > 0 && option->get_name() != "--study")
      fail_input({"", 0, option->get_name()}, "--study forecasts published runs, not this one",
                 "--study alone");
}

int sites_command(const SitesOptions& options, const CLI::App& command) {
  if (!options.study.empty()) {
    refuse_next_to_study(command);
    print_text(site_study_table(site_study(options.study == all_studies ? "" : options.study)));
    return static_cast<int>(Exit::done);
  }
  Catalog catalog;
  const SiteForecast forecast = forecast_sites(options.what_if, options.choice, catalog);
  print_result(options.result, {[&] { return site_forecast_table(forecast); },
                                [&] { return site_forecast_json(forecast); },
                                [&] { return site_forecast_csv(forecast); }});
  return static_cast<int>(Exit::done);
}

// Hides the flags that are refused because each site states its own value, and describes --set.
void adapt_flags_to_sites(CLI::App& command) {
  for (const char* flag : {"--gpus", "--nodes", "--hosts"})
    if (CLI::Option* option = command.get_option_no_throw(flag)) option->group("");
  if (CLI::Option* option = command.get_option_no_throw("--set"))
    option->description(
        "change any key of the clusters, device, model, run or [wan]: wan.up=1Gbit/s");
}

void add_exchange_flags(CLI::App& command, OuterChoice& choice) {
  std::vector<std::string> codecs;
  for (const OuterCodec& codec : outer_codecs()) codecs.emplace_back(codec.name);
  command.add_option("--every", choice.every, "steps between exchanges of a weight (default: 100)")
      ->check(CLI::Range(1, 1'000'000));
  command
      .add_option(
          "--codec", choice.codec,
          fmt::format("a weight's change on the wire: {} (default: bf16)", fmt::join(codecs, ", ")))
      ->type_name("WORD");
  command
      .add_option("--fragments", choice.fragments,
                  "parts of the model, exchanged in turn: N fragments, one each H/N steps "
                  "(default: 1)")
      ->check(CLI::Range(1, 1'000'000));
  command
      .add_option(
          "--delay", choice.delay,
          "steps that go on before the result of an exchange is used (default: 0, all wait)")
      ->check(CLI::Range(0, 1'000'000));
  command.add_flag(
      "--by-layer", choice.by_layer,
      "layers leave behind their backward pass (default: the exchange follows the step)");
  command
      .add_option("--quorum", choice.quorum,
                  "number of sites that a round waits for (default: all of them), or that must "
                  "train with --decoupled (default: 1)")
      ->check(CLI::Range(1, 1000));
  command
      .add_option(
          "--slow", choice.slow,
          "SITE:FACTOR, or N:FACTOR for the first N sites: their steps take FACTOR times as "
          "long, as those of a site with a slow GPU do; may be repeated (default: none)")
      ->type_name("SITE:FACTOR");
  command.add_flag("--decoupled", choice.decoupled,
                   "sites meet through a syncer that merges, and wait for no other site "
                   "(default: all wait)");
}

}  // namespace

Command add_sites(CLI::App& app) {
  auto options = std::make_shared<SitesOptions>();
  CLI::App* command = app.add_subcommand(
      "sites", "training by sites far apart that exchange weights every H steps (DiLoCo)");
  add_what_if_flags(*command, options->what_if);
  adapt_flags_to_sites(*command);
  add_exchange_flags(*command, options->choice);
  command
      ->add_option(
          "--study", options->study,
          "published figures of such runs next to their forecasts, in place of a forecast: "
          "of one study, or of all (the default)")
      ->type_name("STUDY")
      ->expected(0, 1)
      ->default_str(std::string(all_studies));
  add_result_flags(*command, options->result,
                   "table (the default), json or csv: a row per codec and number of steps");
  command->footer(R"(Examples
  lambcast sites --cluster two-data-centres --model llama2-7b --zero-stage 3 --framework torchtitan --precision bf16 \
    --global-batch 256 --micro-batch 1 --optimizer adamw --steps 1000 --every 100 --codec int8
  lambcast sites --study
  lambcast sites --study intellect-1
Exit codes: 0 done, 2 bad usage or input.)");
  return [options, command] { return sites_command(*options, *command); };
}

}  // namespace lambcast
