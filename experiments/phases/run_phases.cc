#include "experiments/phases/run_phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "experiments/output/skipped_steps.h"
#include "experiments/scenario/words.h"

namespace lambcast {
namespace {

// Returns the previous question with the keys of a phase. Of the three batch numbers two determine
// the third, so the phase's own ones replace the others.
WhatIf changed(const WhatIf& before, const std::string& keys) {
  WhatIf own;
  for (std::size_t begin = 0; begin < keys.size();) {
    const std::size_t end = std::min(keys.find(' ', begin), keys.size());
    const std::string part = keys.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      fail_input({"", 0, "--then"}, fmt::format("'{}' is not KEY=VALUE", part),
                 "\"seq_len=512 global_batch=32768 steps=782\"");
    std::string key = part.substr(0, equals);
    std::replace(key.begin(), key.end(), '-', '_');
    if (!own.emplace(key, part.substr(equals + 1)).second)
      fail_input({"", 0, "--then"}, fmt::format("{} is given twice", key));
  }
  if (own.empty()) fail_input({"", 0, "--then"}, "changes nothing", "KEY=VALUE KEY=VALUE ...");
  WhatIf phase = before;
  const auto replaces = [&](std::initializer_list<const char*> keys_of_one) {
    for (const char* key : keys_of_one)
      if (own.contains(key))
        for (const char* other : keys_of_one) phase.erase(other);
  };
  replaces({"steps", "samples"});
  if (own.contains("global_batch") || own.contains("config")) phase.erase("grad_accum");
  if (own.contains("config"))
    for (const char* key : {"global_batch", "micro_batch", "freeze_step"}) phase.erase(key);
  for (const auto& [key, value] : own) phase.insert_or_assign(key, value);
  return phase;
}

// Throws Error if the model differs: a phase loads the checkpoint of the previous one.
void check_same_model(const ModelShape& before, const ModelShape& now) {
  const auto size_of = [](const ModelShape& model) {
    return std::tuple(model.family, model.layers, model.hidden, model.heads, model.kv_heads,
                      model.ffn, model.experts, model.vocab);
  };
  if (size_of(before) != size_of(now))
    fail_input({"", 0, "--then"}, fmt::format("a phase loads the checkpoint of the phase before, "
                                              "and a checkpoint of {} does not fit {}{}",
                                              before.name, now.name,
                                              before.name == now.name ? " of another size" : ""));
}

// Adds the skipped steps and their time. A skipped step has no update and no exchange of momentum.
void add_skipped(const Pauses& pauses, RunPhase& phase) {
  const TrainingPlan& training = phase.scenario.training;
  const auto window = training.recipe.precision.loss_scale_window;
  const auto said = static_cast<double>(pauses.skipped_steps);
  if (!window && said > 0)
    fail_input({"", 0, "--skipped-steps"},
               "has no effect: only fp16 with dynamic loss scaling skips steps");
  if (!window) return;
  const double each =
      (said > 0 ? said : expected_skipped_steps(training.recipe.precision, training.steps)) /
      static_cast<double>(training.steps);
  for (const StepForecast& step : phase.forecast.steps) {
    const double steps = static_cast<double>(step.steps) * each;
    const bool sums = step.kind == StepKind::uniform || step.kind == StepKind::warmup;
    const PartTimes parts = part_times(step);
    const double us =
        parts[PartGroup::compute] + parts[PartGroup::bubble] + (sums ? parts[PartGroup::wire] : 0);
    phase.skipped_steps += steps;
    phase.skipped_s += steps * us * 1e-6;
  }
}

// Number of failures, and the time lost to them and to checkpoints.
struct Lost {
  double count = 0, seconds = 0;
};
Lost lost_to(const Failures& failures, double work_s, double step_s) {
  const double interval = step_s * static_cast<double>(failures.checkpoint_steps);
  const double written = work_s * (1 + failures.checkpoint.s() / interval);
  if (!failures.between) return {0, written - work_s};
  const double each = failures.restart.s() + (interval + failures.checkpoint.s()) / 2;
  const double share = each / failures.between->s();
  if (share >= 1)
    fail_input({"", 0, "--mtbf"},
               fmt::format("a failure every {:.4g} s costs {:.4g} s: the run never ends",
                           failures.between->s(), each));
  const double all = written / (1 - share);
  return {all / failures.between->s(), all - work_s};
}

double evaluations_in(const Pauses& pauses, std::int64_t steps) {
  return pauses.evaluation_steps == 0 ? 0 : static_cast<double>(steps / pauses.evaluation_steps);
}

RunPhase forecast_phase(const WhatIf& what_if, const Pauses& pauses, Catalog& catalog,
                        CollectiveCosts& costs) {
  RunPhase phase;
  phase.scenario = resolve(what_if, catalog);
  phase.forecast = forecast(phase.scenario.training, costs);
  add_skipped(pauses, phase);
  return phase;
}

// Returns the time of steps that take `work_s`, including the pauses between them.
double with_pauses(const Pauses& pauses, double work_s, std::int64_t steps) {
  const double work = work_s + evaluations_in(pauses, steps) * pauses.evaluation.s();
  const Lost lost =
      pauses.failures ? lost_to(*pauses.failures, work, work / static_cast<double>(steps)) : Lost{};
  return pauses.startup.s() + work + lost.seconds;
}

void add_pauses(const Pauses& pauses, RunPhase& phase) {
  const std::int64_t steps = phase.scenario.training.steps;
  phase.startup_s = pauses.startup.s();
  phase.evaluations = evaluations_in(pauses, steps);
  phase.evaluations_s = phase.evaluations * pauses.evaluation.s();
  if (!pauses.failures) return;
  const double work = phase.forecast.run.time_s + phase.skipped_s + phase.evaluations_s;
  const Lost lost = lost_to(*pauses.failures, work, work / static_cast<double>(steps));
  phase.failures = lost.count;
  phase.failures_s = lost.seconds;
}

// Returns the time of a phase whose steps take `time`, with skipped steps and losses, at each end
// of the interval.
TimeAtEnds whole_phase(const RunPhase& phase, TimeAtEnds time, const Pauses& pauses) {
  const TimeAtEnds& own = phase.forecast.time;
  const double skipped_share = phase.skipped_s / own.s;
  const auto whole = [&](double& steps_s, double own_s) {
    steps_s = with_pauses(pauses, steps_s + skipped_share * own_s, phase.scenario.training.steps);
  };
  for (std::size_t i = 0; i < error_sources; ++i) {
    whole(time.at[i].low_s, own.at[i].low_s);
    whole(time.at[i].high_s, own.at[i].high_s);
  }
  whole(time.s, own.s);
  return time;
}

// Times of the run so far, and of the same phases with the plain optimizer.
struct BothRuns {
  TimeAtEnds run, plain;
  bool differ = false;
  void add(const RunPhase& phase, const Pauses& pauses) {
    const Forecast& forecast = phase.forecast;
    differ = differ || forecast.run.speedup.has_value();
    run.add(whole_phase(phase, forecast.time, pauses), 1);
    plain.add(
        whole_phase(phase, forecast.run.speedup ? forecast.plain_time : forecast.time, pauses), 1);
  }
};

// Adds the time and cost of a phase at both ends of its interval.
void add_interval(const RunPhase& phase, const Pauses& pauses, PhasedRun& run) {
  const RunForecast& steps = phase.forecast.run;
  const double skipped = 1 + phase.skipped_s / steps.time_s;
  const TrainingPlan& training = phase.scenario.training;
  const double low = with_pauses(pauses, steps.time_low_s * skipped, training.steps);
  const double high = with_pauses(pauses, steps.time_high_s * skipped, training.steps);
  run.time_low_s += low;
  run.time_high_s += high;
  const auto& price = training.cluster->usd_per_gpu_hour;
  const auto add_cost = [&](std::optional<double>& cost, double seconds) {
    cost = cost && price ? std::optional(*cost + seconds / 3600 * training.gpus * price->value)
                         : std::nullopt;
  };
  add_cost(run.cost_usd, phase.time_s());
  add_cost(run.cost_low_usd, low);
  add_cost(run.cost_high_usd, high);
}

// Adds the findings on the forecast of a phase, such as too little memory.
void find_of_phase(const RunPhase& phase, std::size_t number, PhasedRun& run) {
  for (Finding& finding : judge(phase.scenario.training, phase.forecast)) {
    finding.message = fmt::format("phase {} {}", number, finding.message);
    run.findings.push_back(std::move(finding));
  }
}

void find_masks(const RunPhase& phase, std::size_t number, PhasedRun& run) {
  const TrainingPlan& training = phase.scenario.training;
  if (!is_onebit(training.optimizer())) return;
  const ModelShape& model = *training.model;
  const bool positions = std::any_of(model.groups.begin(), model.groups.end(),
                                     [](const std::string& group) { return group == "position"; });
  if (positions && training.seq_len < model.max_seq_len)
    run.findings.push_back(
        {Severity::note, "momentum-mask",
         fmt::format("phase {}: {} of {} position rows have no gradient at sequence {}; the script "
                     "masks their momentum (exp_avg_mask), or compression fills it with noise. The "
                     "mask of a checkpoint is ignored: each phase sets its own",
                     number, model.max_seq_len - training.seq_len, model.max_seq_len,
                     training.seq_len)});
  if (number > 1)
    run.findings.push_back(
        {Severity::note, "errors-reset",
         fmt::format("phase {}: loading the checkpoint drops the errors of compression (error "
                     "feedback); the "
                     "phase starts at step {}, {} freeze_step {}: {}",
                     number, training.steps_done,
                     phase.forecast.steps.front().kind == StepKind::warmup ? "before" : "past",
                     freeze_step_of(training.recipe).value_or(0),
                     phase.forecast.steps.front().kind == StepKind::warmup
                         ? fmt::format("{} more warm-up steps", phase.forecast.steps.front().steps)
                         : "compression goes on")});
}

void find_restarts(PhasedRun& run) {
  const TrainingPlan& training = run.phases.back().scenario.training;
  if (run.failures < 0.5 || !is_onebit(training.optimizer())) return;
  const bool policy = training.optimizer() == OptimizerType::zero_one_adam;
  run.findings.push_back(
      {Severity::warning, "errors-reset-by-failures",
       fmt::format("{:.0f} restarts are expected, and each drops the errors of compression: "
                   "frequent loading could hurt convergence{}",
                   run.failures,
                   policy ? "; 0/1 Adam also starts its policy anew, which sends more than forecast"
                          : "")});
}

void sum_up(const Pauses& pauses, PhasedRun& run) {
  BothRuns runs;
  run.cost_usd = run.cost_low_usd = run.cost_high_usd = 0;
  for (std::size_t i = 0; i < run.phases.size(); ++i) {
    RunPhase& phase = run.phases[i];
    add_pauses(pauses, phase);
    const TrainingPlan& training = phase.scenario.training;
    run.steps += training.steps;
    run.time_s += phase.time_s();
    run.skipped_s += phase.skipped_s;
    run.startup_s += phase.startup_s;
    run.evaluations_s += phase.evaluations_s;
    run.failures_s += phase.failures_s;
    run.failures += phase.failures;
    run.gpu_hours += phase.time_s() / 3600 * training.gpus;
    add_interval(phase, pauses, run);
    runs.add(phase, pauses);
    for (const Finding& finding : phase.scenario.findings) {
      const bool known = std::any_of(run.findings.begin(), run.findings.end(),
                                     [&](const auto& f) { return f.message == finding.message; });
      if (!known) run.findings.push_back(finding);
    }
    find_of_phase(phase, i + 1, run);
    find_masks(phase, i + 1, run);
  }
  if (runs.differ) {
    run.speedup = ratio_of(runs.plain, runs.run);
    run.speedup_vs_baseline = run.speedup->value;
  }
  find_restarts(run);
}

// Throws Error if a flag is given without the one that it needs.
void refuse_alone(const std::string& value, const char* flag, bool other, const char* needed) {
  if (!value.empty() && !other)
    fail_input({"", 0, flag}, fmt::format("has no effect without {}", needed));
}

Duration duration_of(const std::string& value, const char* flag, const char* otherwise) {
  return parse_duration(value.empty() ? otherwise : value, {"", 0, flag});
}

std::optional<Failures> failures_of(const PauseWords& words) {
  refuse_alone(words.checkpoint_time, "--checkpoint-time",
               words.checkpoint_every > 0 || !words.mtbf.empty(), "--checkpoint-every");
  refuse_alone(words.restart_time, "--restart-time", !words.mtbf.empty(), "--mtbf");
  if (words.mtbf.empty() && words.checkpoint_every == 0) return std::nullopt;
  if (words.checkpoint_every == 0)
    fail_input({"", 0, "--checkpoint-every"}, "is missing: the steps that a failure can undo");
  Failures failures{{},
                    words.checkpoint_every,
                    duration_of(words.checkpoint_time, "--checkpoint-time", "0 s"),
                    duration_of(words.restart_time, "--restart-time", "10 min")};
  if (words.mtbf.empty()) {
    if (failures.checkpoint == Duration())
      fail_input({"", 0, "--checkpoint-every"},
                 "has no effect without --mtbf or a --checkpoint-time");
    return failures;
  }
  failures.between = parse_duration(words.mtbf, {"", 0, "--mtbf"});
  if (*failures.between <= Duration()) fail_input({"", 0, "--mtbf"}, "is not above zero");
  return failures;
}

}  // namespace

Pauses parse_pauses(const PauseWords& words) {
  refuse_alone(words.evaluation_time, "--evaluation-time", words.evaluate_every > 0,
               "--evaluate-every");
  const Pauses pauses{duration_of(words.startup_time, "--startup-time", "0 s"),
                      words.evaluate_every,
                      duration_of(words.evaluation_time, "--evaluation-time", "0 s"),
                      failures_of(words), words.skipped_steps};
  if (words.evaluate_every > 0 && pauses.evaluation == Duration())
    fail_input({"", 0, "--evaluate-every"}, "has no effect without an --evaluation-time");
  return pauses;
}

PhasedRun forecast_phases(const WhatIf& first, const std::vector<std::string>& then,
                          const Pauses& pauses, Catalog& catalog) {
  PhasedRun run;
  CollectiveCosts costs;
  WhatIf what_if = first;
  run.phases.push_back(forecast_phase(what_if, pauses, catalog, costs));
  for (const std::string& keys : then) {
    const TrainingPlan& before = run.phases.back().scenario.training;
    what_if = changed(what_if, keys);
    if (before.optimizer() != OptimizerType::zero_one_adam)
      what_if.insert_or_assign("steps_done", fmt::format("{}", before.steps_done + before.steps));
    RunPhase phase = forecast_phase(what_if, pauses, catalog, costs);
    check_same_model(*before.model, *phase.scenario.training.model);
    run.phases.push_back(std::move(phase));
    // The program set --steps-done itself, so a finding on it would confuse the user.
    std::erase_if(run.phases.back().scenario.findings, [](const Finding& finding) {
      return finding.code == "flag-no-effect" && finding.message.starts_with("--steps-done");
    });
  }
  sum_up(pauses, run);
  return run;
}

}  // namespace lambcast
