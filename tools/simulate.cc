#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "experiments/output/explain.h"
#include "experiments/output/forecast_explanation.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/input_ledger.h"
#include "experiments/phases/run_phases.h"
#include "experiments/search/fitting_layout.h"
#include "experiments/sweep/result_row.h"
#include "models/training/memory/memory.h"
#include "sim/base/csv.h"
#include "tools/commands.h"
#include "tools/forecast_flags.h"
#include "tools/patience.h"
#include "tools/short_help.h"
#include "tools/terminal.h"

namespace lambcast {
namespace {

// Flags that extend a what-if to a whole run (run_phases.h).
struct RunFlags {
  std::vector<std::string> then;
  PauseWords pauses;

  bool any() const { return !then.empty() || pauses.any(); }
};

int simulate_run(const ForecastFlags& flags, const RunFlags& run_flags) {
  if (!flags.explain.empty() || !flags.trace.empty() || flags.result.format == "csv" ||
      !flags.result.exports.empty())
    fail_input({"", 0, "--then"}, "makes a run of phases, which is printed only as a table or JSON",
               "no --explain, --trace, --export or --format csv");
  Catalog catalog;
  const PhasedRun run =
      forecast_phases(flags.what_if, run_flags.then, parse_pauses(run_flags.pauses), catalog);
  if (flags.result.format == "json")
    fmt::print("{}", phased_run_json(run));
  else
    print_text(phased_run_table(run));
  const bool fits = std::all_of(run.phases.begin(), run.phases.end(),
                                [](const RunPhase& phase) { return phase.forecast.memory.fits; });
  if (fits || !flags.strict) return static_cast<int>(Exit::done);
  complain("--strict: a phase does not fit in memory");
  return static_cast<int>(Exit::limit);
}

int simulate_command(const ForecastFlags& flags, const RunFlags& run_flags) {
  const Patience patience("simulating");
  if (run_flags.any()) return simulate_run(flags, run_flags);
  refuse_output_beside_explanation(flags);
  Catalog catalog;
  if (flags.explain == "inputs") return print_text(explain_inputs(flags.what_if, catalog)), 0;
  const Scenario scenario = resolve(flags.what_if, catalog);
  const bool of_forecast = std::ranges::count(forecast_explanation_names(), flags.explain) > 0;
  if (!flags.explain.empty() && !of_forecast) {
    print_text(explain(scenario.training, flags.explain));
    return exit_code(flags, forecast_memory(scenario.training).fits);
  }
  CollectiveCosts costs;
  const Forecast result = forecast(scenario.training, costs);
  Judgement judgement = judgement_of(scenario, result);
  judgement.fused = fused_speedup(scenario, result, costs);
  for (Finding& finding : find_fitting_layouts(scenario, result.memory.fits, catalog))
    judgement.findings.push_back(std::move(finding));
  if (of_forecast) {
    print_text(explain_forecast(scenario.training, result, judgement, flags.explain));
    return exit_code(flags, result.memory.fits);
  }
  return print_forecast(flags, scenario.training, result.memory.fits,
                        {[&] { return forecast_table(scenario, result, judgement); },
                         [&] { return forecast_json(scenario, result, judgement); },
                         [&] {
                           return fmt::format("{}\n{}\n", csv::row(result_columns()),
                                              result_row(scenario, result, judgement));
                         }});
}

}  // namespace

Command add_simulate(CLI::App& app) {
  auto flags = std::make_shared<ForecastFlags>();
  auto run = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("simulate", "one what-if: step and whole-run forecast");
  add_forecast_flags(
      *command, *flags,
      {"table (the default), json or csv",
       "file for one step per phase as a Chrome trace (-: to stdout, alone; default: none)"});
  command
      ->add_option(
          "--explain", flags->explain,
          "prints in place of the forecast (default: the forecast): the sources of its numbers, "
          "the parts of its memory, "
          "its notes with remedies, the plan of each step, the prices of its operations, the "
          "treatment of each key of the input files (inputs), or statistics of the program's own "
          "work (stats)")
      ->check(CLI::IsMember(explanation_names()));
  command
      ->add_option("--then", run->then,
                   "a phase that goes on from the checkpoint of the one before, with some keys "
                   "changed: \"seq_len=512 global_batch=32768 steps=782\"; may be repeated")
      ->allow_extra_args(false)
      ->group(rare_flags);
  command
      ->add_option("--mtbf", run->pauses.mtbf,
                   "mean time between failures of the whole job, such as \"12 h\" (default: none)")
      ->group(rare_flags);
  command
      ->add_option("--checkpoint-every", run->pauses.checkpoint_every,
                   "steps from checkpoint to checkpoint (default: none)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->group(rare_flags);
  command
      ->add_option("--checkpoint-time", run->pauses.checkpoint_time,
                   "time to write a checkpoint (default: 0 s, during the run)")
      ->group(rare_flags);
  command
      ->add_option("--restart-time", run->pauses.restart_time,
                   "time from a failure to the next step (default: 10 min, assumed)")
      ->group(rare_flags);
  command
      ->add_option(
          "--startup-time", run->pauses.startup_time,
          "time from the start of the job, or of a phase, to its first step (default: 0 s)")
      ->group(rare_flags);
  command
      ->add_option("--evaluate-every", run->pauses.evaluate_every,
                   "steps from evaluation to evaluation (default: none)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->group(rare_flags);
  command
      ->add_option("--evaluation-time", run->pauses.evaluation_time,
                   "time of one evaluation, such as \"2 min\" (default: 0 s)")
      ->group(rare_flags);
  command
      ->add_option("--skipped-steps", run->pauses.skipped_steps,
                   "steps of each phase that fp16's dynamic loss scale skips, added to the others "
                   "(default, of a run with one of these flags: one in a loss_scale_window)")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1'000'000'000}))
      ->group(rare_flags);
  command->footer(R"(Examples
  lambcast simulate --model bert-large --cluster paper-eth40-v100 --gpus 64 --optimizer onebit_lamb \
    --global-batch 65536 --micro-batch 16 --steps 5993 --freeze-step 1000
  lambcast simulate --config ds.json --model bert-large --cluster paper-edr100-v100 --gpus 128 \
    --format json --set cluster.nic.bandwidth=10Gbit/s
  lambcast simulate --config seq128.json --model bert-large --cluster paper-edr100-v100 --gpus 128 \
    --steps 5993 --then "config=seq512.json seq_len=512 steps=782" --mtbf "12 h" --checkpoint-every 500)");
  return [flags, run] { return simulate_command(*flags, *run); };
}

}  // namespace lambcast
