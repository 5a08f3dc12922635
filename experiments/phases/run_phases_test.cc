#include "experiments/phases/run_phases.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/output/forecast_output.h"
#include "experiments/phases/run_totals.h"
#include "experiments/scenario/scenario_case.h"
#include "models/training/memory/memory_remedy.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// The recipe of two phases: 5,993 steps of 128 tokens at batch 65,536 (1-bit LAMB paper), then
// steps of 512 tokens at batch 32,768. These load the checkpoint and freeze at step 6100
// (DeepSpeedExamples, bing_bert). The number of these steps, 782, is assumed: half of 100,000 * 512
// / 32,768 = 1,562.5, the second phase of the LAMB paper (arXiv 1904.00962: the last 10 % of
// 1,000,000 iterations of batch 512, 8,599 in all at 64K and 32K).
WhatIf first_phase() {
  return with(
      {{"gpus", "128"}, {"micro_batch", "64"}, {"seq_len", "128"}, {"freeze_step", "1000"}});
}
const char* const second_phase =
    "seq_len=512 global_batch=32768 micro_batch=16 steps=782 freeze_step=6100";

bool has(const PhasedRun& run, std::string_view code) {
  return std::any_of(run.findings.begin(), run.findings.end(),
                     [&](const Finding& finding) { return finding.code == code; });
}

PhasedRun two_phases(const Pauses& pauses = {}) {
  Catalog catalog;
  return forecast_phases(first_phase(), {second_phase}, pauses, catalog);
}

TEST_CASE("run phases: a phase's freeze step counts from the first step of the run") {
  const PhasedRun run = two_phases();
  REQUIRE(run.phases.size() == 2);
  const auto& steps = run.phases[1].forecast.steps;
  REQUIRE(steps.size() == 2);
  CHECK(run.phases[0].forecast.steps[0].steps == 999);
  CHECK(steps[0].kind == StepKind::warmup);
  CHECK(steps[0].steps == 6100 - 1 - 5993);
  CHECK(steps[1].steps == 782 - 106);
  CHECK(run.phases[1].scenario.training.seq_len == 512);
  CHECK(run.phases[1].scenario.training.batch.train == 32768);
  CHECK(run.steps == 5993 + 782);
  CHECK(has(run, "momentum-mask"));
  CHECK(has(run, "errors-reset"));
  CHECK_FALSE(has(run, "never-compressed"));
}

TEST_CASE("run phases: a phase that begins after its freeze step compresses from the start") {
  Catalog catalog;
  const PhasedRun run = forecast_phases(
      first_phase(), {"seq_len=512 global_batch=32768 micro_batch=16 steps=782"}, {}, catalog);
  REQUIRE(run.phases[1].forecast.steps.size() == 1);
  CHECK(run.phases[1].forecast.steps[0].kind == StepKind::compression);
}

TEST_CASE("run phases: another model loads no checkpoint") {
  const auto with_phase = [](const char* keys) {
    Catalog catalog;
    return forecast_phases(first_phase(), {keys}, {}, catalog);
  };
  CHECK_THROWS_WITH(
      with_phase("model=gpt2"),
      "--then: a phase loads the checkpoint of the phase before, and a checkpoint of bert-large "
      "does not fit gpt2");
  CHECK_THROWS_WITH(with_phase("model.layers=12"),
                    Contains("a checkpoint of bert-large does not fit bert-large of another size"));
  CHECK(with_phase("model=bert-large seq_len=512 steps=10").phases.size() == 2);
}

TEST_CASE("run phases: the run is the sum of its phases") {
  const PhasedRun run = two_phases();
  double time = 0, hours = 0, plain = 0;
  for (const RunPhase& phase : run.phases) {
    time += phase.forecast.run.time_s + phase.skipped_s;
    hours += (phase.forecast.run.time_s + phase.skipped_s) / 3600 * 128;
    plain += phase.forecast.run.time_s * phase.forecast.run.speedup_vs_baseline + phase.skipped_s;
    CHECK(phase.failures_s == 0);
  }
  CHECK(run.time_s == Approx(time).epsilon(1e-12));
  CHECK(run.gpu_hours == Approx(hours).epsilon(1e-12));
  CHECK(run.speedup_vs_baseline == Approx(plain / time).epsilon(1e-12));
  CHECK(run.speedup_vs_baseline > 1);
}

TEST_CASE("run phases: errors are common to all phases, and cancel against the plain run") {
  const PhasedRun run = two_phases();
  double low = 0, high = 0, independent = 0;
  TimeAtEnds time, plain;
  for (const RunPhase& phase : run.phases) {
    const RunForecast& of = phase.forecast.run;
    const double skipped = 1 + phase.skipped_s / of.time_s;
    low += of.time_low_s * skipped;
    high += of.time_high_s * skipped;
    independent += std::pow((of.time_high_s - of.time_s) * skipped, 2);
    time.add(phase.forecast.time, 1);
    plain.add(phase.forecast.plain_time, 1);
  }
  CHECK(run.time_low_s == Approx(low).epsilon(1e-12));
  CHECK(run.time_high_s == Approx(high).epsilon(1e-12));
  CHECK(run.time_high_s - run.time_s > 1.05 * std::sqrt(independent));
  REQUIRE(run.speedup);
  CHECK(run.speedup->value == run.speedup_vs_baseline);
  // The tolerance allows for skipped steps, which take a thousandth of the run.
  const RatioInterval joint = ratio_of(plain, time);
  CHECK(run.speedup->low == Approx(joint.low).epsilon(2e-3));
  CHECK(run.speedup->high == Approx(joint.high).epsilon(2e-3));
  // If the two runs shared no error, as on two machines, the interval of the ratio would be wider.
  const RatioInterval apart = ratio_of(plain, time, ErrorSources());
  CHECK(run.speedup->high < apart.high);
  CHECK(run.speedup->low > apart.low);
}

TEST_CASE("run phases: the same phase twice has the interval of one with twice the steps") {
  Catalog catalog;
  WhatIf twice = with({{"steps", "2000"}, {"optimizer", "lamb"}}, first_phase());
  twice.erase("freeze_step");
  WhatIf once = twice;
  once["steps"] = "4000";
  const PhasedRun two = forecast_phases(twice, {"steps=2000"}, {}, catalog);
  const PhasedRun one = forecast_phases(once, {}, {}, catalog);
  CHECK(two.time_low_s == Approx(one.time_low_s).epsilon(1e-9));
  CHECK(two.time_high_s == Approx(one.time_high_s).epsilon(1e-9));
  CHECK_FALSE(two.speedup);
  CHECK(two.speedup_vs_baseline == 1);
}

TEST_CASE("run phases: failures lengthen both ends of the interval too") {
  const Failures failures{Duration::seconds(36000), 100, Duration::seconds(5),
                          Duration::seconds(600)};
  const PhasedRun without = two_phases(), run = two_phases({.failures = failures});
  CHECK(run.time_low_s > without.time_low_s);
  CHECK(run.time_high_s > without.time_high_s);
  CHECK(run.time_low_s < run.time_s);
  CHECK(run.time_high_s > run.time_s);
  CHECK(run.speedup->low < run.speedup->value);
  CHECK(run.speedup->high > run.speedup->value);
}

TEST_CASE("run phases: fp16 skips one step in a thousand, other precisions none") {
  const PhasedRun run = two_phases();
  CHECK(run.phases[0].skipped_steps == Approx(5993 / 1000.0));
  // A skipped step takes at most as long as a whole step of the slowest stage.
  CHECK(run.phases[0].skipped_s > 0);
  CHECK(run.phases[0].skipped_s <
        run.phases[0].skipped_steps * run.phases[0].forecast.steps[0].step_time_us * 1e-6);
  Catalog catalog;
  const PhasedRun plain =
      forecast_phases(with({{"precision", "fp32"}}, first_phase()), {}, {}, catalog);
  CHECK(plain.phases[0].skipped_s == 0);
}

TEST_CASE("run phases: failures cost half an interval and a restart each") {
  const Failures failures{Duration::seconds(36000), 100, Duration::seconds(5),
                          Duration::seconds(600)};
  const PhasedRun without = two_phases(), run = two_phases({.failures = failures});
  double all = 0;
  for (const RunPhase& phase : without.phases) {
    const double work = phase.time_s();
    const double interval = 100 * work / static_cast<double>(phase.scenario.training.steps);
    all += work * (1 + 5 / interval) / (1 - (600 + (interval + 5) / 2) / 36000);
  }
  CHECK(run.time_s == Approx(all).epsilon(1e-9));
  CHECK(run.failures == Approx(all / 36000).epsilon(1e-9));
  CHECK(run.failures_s == Approx(all - without.time_s).epsilon(1e-9));
  const PhasedRun rarer = two_phases(
      {.failures = Failures{Duration::seconds(360000), 100, Duration(), Duration::seconds(600)}});
  CHECK(rarer.time_s < run.time_s);
  CHECK(has(run, "errors-reset-by-failures"));
  CHECK_THROWS_WITH(two_phases({.failures = Failures{Duration::seconds(500), 100, Duration(),
                                                     Duration::seconds(600)}}),
                    Contains("the run never ends"));
}

TEST_CASE("run phases: a pause is refused without the flag that it depends on") {
  struct Case {
    PauseWords words;
    const char* why;
  };
  for (const Case& c : std::vector<Case>{
           {{.checkpoint_time = "1 min"},
            "--checkpoint-time: has no effect without --checkpoint-every"},
           {{.restart_time = "1 min"}, "--restart-time: has no effect without --mtbf"},
           {{.restart_time = "1 min", .checkpoint_every = 9},
            "--restart-time: has no effect without --mtbf"},
           {{.evaluation_time = "1 min"},
            "--evaluation-time: has no effect without --evaluate-every"}}) {
    CHECK(c.words.any());
    CHECK_THROWS_WITH(parse_pauses(c.words), Catch::Equals(c.why));
  }
  const Pauses pauses = parse_pauses({.mtbf = "12 h", .checkpoint_every = 10});
  CHECK(pauses.failures->restart == Duration::seconds(600));
  CHECK_FALSE(PauseWords().any());
}

TEST_CASE("run phases: steps that loss scaling skipped count in the run, as many as are given") {
  const PhasedRun few = two_phases(), many = two_phases(parse_pauses({.skipped_steps = 20}));
  double more = 0;
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(many.phases[i].skipped_steps == Approx(20));
    const double each = few.phases[i].skipped_s / few.phases[i].skipped_steps;
    CHECK(many.phases[i].skipped_s == Approx(20 * each));
    more += many.phases[i].skipped_s - few.phases[i].skipped_s;
  }
  CHECK(more > 0);
  CHECK(many.time_s - few.time_s == Approx(more));
  CHECK_THAT(phased_run_table(many), Contains("skipped           20.0"));
  WhatIf bf16 = first_phase();
  bf16.insert_or_assign("optimizer", "adamw");
  bf16.insert_or_assign("precision", "bf16");
  bf16.erase("freeze_step");
  Catalog catalog;
  CHECK_THROWS_WITH(forecast_phases(bf16, {}, parse_pauses({.skipped_steps = 20}), catalog),
                    Contains("--skipped-steps: has no effect"));
}

TEST_CASE("run phases: a later phase has no finding on the steps before it") {
  Catalog catalog;
  const PhasedRun run = forecast_phases(without({"freeze_step"}, {{"optimizer", "lamb"}}),
                                        {"seq_len=512 steps=100"}, {}, catalog);
  CHECK(run.phases[1].scenario.training.steps_done == 5993);
  for (const RunPhase& phase : run.phases)
    for (const Finding& finding : phase.scenario.findings) CHECK(finding.code != "flag-no-effect");
}

TEST_CASE("run phases: both runs include start-up and evaluations") {
  Pauses pauses{Duration::seconds(90), 1000, Duration::seconds(6), {}};
  const PhasedRun without = two_phases(), run = two_phases(pauses);
  // There is an evaluation every 1,000 steps: 5 in 5,993 steps, none in 782.
  CHECK(run.phases[0].evaluations == 5);
  CHECK(run.phases[1].evaluations == 0);
  CHECK(run.startup_s == Approx(2 * 90));
  CHECK(run.evaluations_s == Approx(5 * 6));
  CHECK(run.time_s == Approx(without.time_s + 210).epsilon(1e-12));
  CHECK(run.time_low_s == Approx(without.time_low_s + 210).epsilon(1e-12));
  const double plain = without.speedup_vs_baseline * without.time_s;
  CHECK(run.speedup_vs_baseline == Approx((plain + 210) / (without.time_s + 210)).epsilon(1e-9));
  CHECK_THAT(phased_run_table(run), Contains("start-up"));
  CHECK_THAT(phased_run_table(run), Contains("evaluation"));

  // Checkpoints without failures: 59 intervals of 100 steps and a remainder, then 7 and a
  // remainder.
  pauses = {};
  pauses.failures = Failures{{}, 100, Duration::seconds(5), {}};
  const PhasedRun saved = two_phases(pauses);
  CHECK(saved.failures == 0);
  CHECK(saved.time_s == Approx(without.time_s + 5 * (5993 + 782) / 100.).epsilon(1e-9));
  CHECK_THAT(phased_run_table(saved), Contains("checkpoints"));
}

TEST_CASE("run phases: an invalid phase is an error of the flag") {
  Catalog catalog;
  const std::pair<const char*, const char*> cases[] = {
      {"512", "'512' is not KEY=VALUE"},
      {"", "changes nothing"},
      {"seq_len=512 seq-len=256", "seq_len is given twice"},
      {"seqlen=512", "did you mean 'seq_len'"},
      {"seq_len=5120", "512"}};
  for (const auto& [keys, words] : cases)
    CHECK_THROWS_WITH(forecast_phases(first_phase(), {keys}, {}, catalog), Contains(words));
  CHECK_THROWS_WITH(resolve(with({{"optimizer", "zero_one_adam"}, {"steps_done", "5"}}), catalog),
                    Contains("--steps-done: 0/1 Adam restarts its policy"));
}

TEST_CASE("run phases: table and JSON have the same numbers") {
  const PhasedRun run = two_phases();
  CHECK_THAT(phased_run_table(run), Contains("128 GPUs, 2 phase(s)"));
  CHECK_THAT(phased_run_table(run), Contains(ratio_text(*run.speedup) + " as fast as lamb"));
  CHECK_THAT(phased_run_json(run), Contains("\"phases\": ["));
  CHECK_THAT(phased_run_json(run), Contains("\"errors-reset\""));
}

TEST_CASE("run phases: a phase that does not fit names a remedy") {
  Catalog catalog;
  WhatIf first = first_phase();
  first["micro_batch"] = "8";
  const PhasedRun run = forecast_phases(
      first, {"seq_len=512 global_batch=32768 micro_batch=256 steps=782"}, {}, catalog);
  REQUIRE(run.phases[0].forecast.memory.fits);
  REQUIRE_FALSE(run.phases[1].forecast.memory.fits);
  REQUIRE(has(run, "out-of-memory"));
  const std::string remedy = memory_remedies(run.phases[1].scenario.training).at(0);
  CHECK_THAT(phased_run_table(run), Contains("error: phase 2 needs ") && Contains(remedy));
  CHECK_THAT(phased_run_json(run), Contains(remedy));
}

TEST_CASE("run phases: releases are checked in each phase that names them") {
  CHECK_THAT(refusal(with({{"versions", "torch=1.7"}, {"backend", "nccl"}})),
             Contains("--versions: the nccl backend needs PyTorch 1.8"));
  CHECK_THAT(refusal(with({{"versions", "torch"}})), Contains("is not NAME=VERSION"));
  const Scenario scenario =
      resolved(with({{"versions", "deepspeed=0.16.4,nccl=2.8.1"}, {"backend", "nccl"}}));
  const auto found = [&](std::string_view code) {
    return std::any_of(scenario.findings.begin(), scenario.findings.end(),
                       [&](const Finding& finding) { return finding.code == code; });
  };
  CHECK(found("nccl-too-old"));
  CHECK(found("gradients-not-averaged"));
}

TEST_CASE("run phases: a whole run keeps the rates, memory, findings and sources of its phases") {
  Catalog catalog;
  const PhasedRun alone = forecast_phases(first_phase(), {}, {}, catalog);
  const RunPhase& phase = alone.phases.front();
  const LanguageRates rates = language_rates(phase.scenario.training, phase.forecast);
  // Without flags, only skipped steps make the run longer than the steps of its phase.
  const double share = phase.forecast.run.time_s / alone.time_s;
  const RunTotals totals = totals_of(alone);
  CHECK(*totals.tokens_per_s == Approx(*rates.tokens_per_s * share));
  CHECK(*totals.mfu == Approx(*rates.mfu * share));
  CHECK(totals.sources.size() == phase.forecast.sources.shares().size());
  const PhasedRun run = two_phases();
  const RunTotals both = totals_of(run);
  CHECK(both.largest == &*std::ranges::max_element(run.phases, {}, [](const RunPhase& of) {
          return of.forecast.memory.peak;
        }));
  // The run has 5,993 batches of 65,536 and 782 of 32,768.
  CHECK(both.samples_per_s * run.time_s == Approx(5993.0 * 65536 + 782.0 * 32768));
  CHECK(both.tokens_per_s.value() * run.time_s ==
        Approx(5993.0 * 65536 * 128 + 782.0 * 32768 * 512));
  CHECK_THAT(phased_run_table(run), Contains("tokens: ") && Contains("MFU ") &&
                                        Contains("memory") && Contains("sources of the costs"));
  // The findings of the run include those of each phase.
  for (const RunPhase& of : run.phases)
    for (const Finding& finding : judge(of.scenario.training, of.forecast))
      CHECK(has(run, finding.code));
}

}  // namespace
}  // namespace lambcast
