#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/output/cell.h"
#include "experiments/output/forecast_explanation.h"
#include "experiments/output/forecast_output.h"
#include "experiments/output/memory_output.h"
#include "experiments/output/rate_text.h"
#include "experiments/phases/run_phases.h"
#include "experiments/phases/run_totals.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

Json findings_json(const std::vector<Finding>& findings) {
  Json list = Json::array();
  for (const Finding& finding : findings)
    list.push_back({{"severity", std::string(name_of(finding.severity))},
                    {"code", finding.code},
                    {"message", finding.message}});
  return list;
}

// Formats the rates of the whole run, the memory of its largest phase, and the sources of its
// costs.
std::string totals_text(const RunTotals& totals, std::size_t phases) {
  std::string out;
  if (totals.tokens_per_s) {
    out += fmt::format("tokens: {} a second of the run, {:.1f} TFLOP/s a GPU",
                       rate_text(*totals.tokens_per_s), totals.tflops_per_gpu);
    if (totals.mfu) out += fmt::format(" (MFU {:.1f} %)", 100 * *totals.mfu);
    out += "\n";
  }
  if (phases > 1) out += "the phase that needs most: ";
  out += memory_text(totals.largest->scenario.training, totals.largest->forecast.memory);
  return out + sources_text(totals.sources);
}

}  // namespace

std::string phased_run_table(const PhasedRun& run) {
  const TrainingPlan& first = run.phases.front().scenario.training;
  std::string out =
      fmt::format("{} with {} on {}: {} GPUs, {} phase(s)\n\n", first.model->name,
                  name_of(first.optimizer()), first.cluster->name, first.gpus, run.phases.size());
  out += fmt::format("{:>5} {:>8} {:>8}  {:<12} {:>9} {:>12} {:>12}\n", "phase", "sequence",
                     "batch", "kind", "steps", "step (ms)", "time");
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    const RunPhase& phase = run.phases[i];
    const TrainingPlan& training = phase.scenario.training;
    for (const StepForecast& step : phase.forecast.steps)
      out += fmt::format("{:>5} {:>8} {:>8}  {:<12} {:>9} {:>12.2f} {:>12}\n", i + 1,
                         training.seq_len, training.batch.train, name_of(step.kind), step.steps,
                         step.step_time_us * 1e-3,
                         time_cell(step.step_time_us * 1e-6 * static_cast<double>(step.steps)));
    if (phase.skipped_s > 0)
      out += fmt::format("{:>5} {:>8} {:>8}  {:<12} {:>9.1f} {:>12} {:>12}\n", "", "", "",
                         "skipped", phase.skipped_steps, "", time_cell(phase.skipped_s));
    const auto pause = [&](const char* name, const std::string& times, double seconds) {
      if (seconds > 0)
        out += fmt::format("{:>5} {:>8} {:>8}  {:<12} {:>9} {:>12} {:>12}\n", "", "", "", name,
                           times, "", time_cell(seconds));
    };
    pause("start-up", "1", phase.startup_s);
    pause("evaluation", fmt::format("{:.0f}", phase.evaluations), phase.evaluations_s);
    pause(phase.failures > 0 ? "failures" : "checkpoints",
          phase.failures > 0 ? fmt::format("{:.2f}", phase.failures) : "", phase.failures_s);
  }
  out += fmt::format("\nrun: {} steps in {}, {:.1f} GPU-hours", run.steps,
                     time_and_range(run.time_s, run.time_low_s, run.time_high_s), run.gpu_hours);
  if (run.cost_usd)
    out += fmt::format(", {} USD ({} to {})", usd_cell(*run.cost_usd), usd_cell(*run.cost_low_usd),
                       usd_cell(*run.cost_high_usd));
  if (run.speedup)
    out += fmt::format("; {} as fast as {}", ratio_text(*run.speedup),
                       run.phases.front().forecast.run.baseline_optimizer);
  out += "\n" + totals_text(totals_of(run), run.phases.size());
  for (const Finding& finding : run.findings)
    out += fmt::format("{}: {} [{}]\n", name_of(finding.severity), finding.message, finding.code);
  return out;
}

std::string phased_run_json(const PhasedRun& run) {
  Json json{{"schema_version", 1},
            {"tool", "lambcast"},
            {"version", tool_version},
            {"phases", Json::array()}};
  for (const RunPhase& phase : run.phases) {
    Judgement judgement = judgement_of(phase.scenario, phase.forecast);
    judgement.findings = phase.scenario.findings;
    Json one = parse_json(forecast_json(phase.scenario, phase.forecast, judgement));
    for (const char* key : {"schema_version", "tool", "version"}) one.erase(key);
    one["run"].erase("steps_skipped");  // this output counts them as additional steps
    one["skipped"] = {{"steps", phase.skipped_steps}, {"time_s", phase.skipped_s}};
    one["startup_s"] = phase.startup_s;
    one["evaluations"] = {{"count", phase.evaluations}, {"time_s", phase.evaluations_s}};
    one["failures"] = {{"expected", phase.failures}, {"time_s", phase.failures_s}};
    one["time_s"] = phase.time_s();
    json["phases"].push_back(std::move(one));
  }
  const RunTotals totals = totals_of(run);
  json["run"] = {{"steps", run.steps},
                 {"time_s", run.time_s},
                 {"skipped_s", run.skipped_s},
                 {"startup_s", run.startup_s},
                 {"evaluations_s", run.evaluations_s},
                 {"failures", run.failures},
                 {"failures_s", run.failures_s},
                 {"gpu_hours", run.gpu_hours},
                 {"cost_usd", number_or_null(run.cost_usd)},
                 {"speedup_vs_baseline", run.speedup_vs_baseline},
                 {"baseline_optimizer", run.phases.front().forecast.run.baseline_optimizer},
                 {"time_low_s", run.time_low_s},
                 {"time_high_s", run.time_high_s},
                 {"cost_low_usd", number_or_null(run.cost_low_usd)},
                 {"cost_high_usd", number_or_null(run.cost_high_usd)},
                 {"speedup_low", run.speedup ? Json(run.speedup->low) : Json(nullptr)},
                 {"speedup_high", run.speedup ? Json(run.speedup->high) : Json(nullptr)},
                 {"samples_per_s", totals.samples_per_s},
                 {"tokens_per_s", number_or_null(totals.tokens_per_s)},
                 {"tflops_per_gpu", totals.tflops_per_gpu},
                 {"mfu", number_or_null(totals.mfu)}};
  json["memory"] = memory_json(totals.largest->scenario.training, totals.largest->forecast.memory);
  json["provenance"] = Json::object();
  for (const CostSource& source : totals.sources)
    json["provenance"][source.cost] = {{"kind", std::string(name_of(source.provenance.kind))},
                                       {"source", source.provenance.source},
                                       {"share", source.share}};
  json["findings"] = findings_json(run.findings);
  return json_lines(json);
}

}  // namespace lambcast
