#include "experiments/scenario/plugin_choice.h"

#include <cstdlib>
#include <set>

#include "experiments/scenario/scenario_case.h"
#include "models/training/plan/step_plan.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Contains;
using Catch::EndsWith;
using Catch::Equals;

// Returns a run of BERT-Large on DGX A100s with a plugin of Colossal-AI.
WhatIf with_plugin(const char* optimizer, const char* plugin, const WhatIf& more = {}) {
  WhatIf what_if{{"model", "bert-large"},  {"cluster", "dgx-a100-80g"}, {"gpus", "16"},
                 {"micro_batch", "1"},     {"grad_accum", "4"},         {"steps", "1000"},
                 {"optimizer", optimizer}, {"plugin", plugin},          {"precision", "bf16"}};
  for (const auto& [key, value] : more) what_if.insert_or_assign(key, value);
  return what_if;
}

std::vector<std::string> warnings(const WhatIf& asked) {
  std::vector<std::string> codes;
  for (const Finding& finding : resolved(asked).findings)
    if (finding.severity == Severity::warning) codes.push_back(finding.code);
  return codes;
}

TEST_CASE("plugin: every cell of Colossal-AI's table runs, warns or is refused in its words") {
  struct Cell {
    const char *optimizer, *plugin;
    WhatIf more;
    const char* refused;                // error text; empty if it runs
    std::vector<std::string> warnings;  // expected if it runs
  };
  const WhatIf none, zero2{{"zero_stage", "2"}}, divided{{"tp", "2"}, {"pp", "2"}},
      seed{{"tp", "2"}, {"zero_stage", "2"}};
  const char* unsupported = "Colossal-AI marks it unsupported";
  const std::vector<std::string> rows{"columns-not-averaged"}, sums{"columns-summed"},
      alias{"residuals-aliased"};
  const Cell cells[] = {
      {"distributed_lamb", "hybrid_parallel", divided, "", {}},
      {"distributed_lamb", "hybrid_parallel", zero2, "", {}},
      {"distributed_lamb", "low_level_zero", none, "", {}},
      {"distributed_lamb", "low_level_zero", zero2, "", {}},
      {"distributed_lamb", "torch_ddp", none, "", {}},
      {"distributed_lamb", "gemini", none, unsupported, {}},
      {"distributed_lamb", "moe_hybrid", none, unsupported, {}},
      {"lamb", "hybrid_parallel", none, "", {"cast-to-distributed"}},
      {"lamb", "low_level_zero", none, "", {"cast-to-distributed"}},
      {"lamb", "torch_ddp", none, "", {}},
      {"lamb", "gemini", none, unsupported, {}},
      {"lamb", "moe_hybrid", none, unsupported, {}},
      {"galore_adamw8bit", "hybrid_parallel", none, "", {}},
      {"galore_adamw8bit", "hybrid_parallel", divided, "", {"galore-slices"}},
      {"galore_adamw8bit", "hybrid_parallel", zero2, "logs so and trains at stage 0 (allowed", {}},
      {"galore_adamw8bit", "low_level_zero", none, "flat shards of matrices", {}},
      {"galore_adamw8bit", "low_level_zero", zero2, "leaves gradients whole, but not states", {}},
      {"galore_adamw8bit", "torch_ddp", none, "", {"galore-writes-gradients"}},
      {"galore_adamw8bit", "gemini", none, unsupported, {}},
      {"galore_adamw8bit", "moe_hybrid", none, unsupported, {}},
      {"adafactor", "hybrid_parallel", divided, "", {}},
      {"adafactor", "hybrid_parallel", seed, "", rows},
      {"adafactor", "low_level_zero", none, "", sums},
      {"adafactor", "torch_ddp", none, "", {}},
      {"adafactor", "gemini", none, unsupported, {}},
      {"adafactor", "moe_hybrid", none, unsupported, {}},
      {"came", "hybrid_parallel", none, "", alias},
      {"came", "hybrid_parallel", zero2, "", {rows[0], alias[0]}},
      {"came", "low_level_zero", none, "", {sums[0], alias[0]}},
      {"came", "torch_ddp", none, "", {}},
      {"came", "gemini", none, unsupported, {}},
      {"came", "moe_hybrid", none, unsupported, {}},
  };
  std::set<std::pair<std::string, std::string>> walked;
  for (const Cell& cell : cells) {
    walked.insert({cell.optimizer, cell.plugin});
    const WhatIf asked = with_plugin(cell.optimizer, cell.plugin, cell.more);
    INFO(cell.optimizer << " with " << cell.plugin);
    if (*cell.refused != '\0') {
      CHECK_THAT(refusal(asked), Contains(cell.refused));
      CHECK(refusal(asked).find('\n') == std::string::npos);
      continue;
    }
    REQUIRE_THAT(refusal(asked), Equals(""));
    CHECK(warnings(asked) == cell.warnings);
    // A cell that runs has a forecast.
    const Scenario scenario = resolved(asked);
    CollectiveCosts costs;
    const Forecast of = forecast(scenario.training, costs);
    CHECK(of.run.time_s > 0);
    CHECK(of.memory.peak.value() > 0);
  }
  CHECK(walked.size() == 5 * plugin_names().size());
}

// low_level_zero is not offered for GaLore: its shards are not matrices, so GaLore cannot project
// them.
TEST_CASE("plugin: an error offers the plugins that run the optimizer") {
  CHECK_THAT(refusal(with_plugin("galore_adamw8bit", "gemini")),
             EndsWith("allowed: hybrid_parallel, torch_ddp)"));
  CHECK_THAT(refusal(with_plugin("came", "gemini")),
             EndsWith("allowed: hybrid_parallel, low_level_zero, torch_ddp)"));
}

TEST_CASE("plugin: the effect of a cast on optimizers is reported, without a plugin too") {
  const auto codes = [](WhatIf asked) {
    std::string all;
    for (const Finding& finding : resolved(asked).findings) all += finding.code + " ";
    return all;
  };
  const auto without_plugin = [&](const char* optimizer, const char* stage) {
    WhatIf asked = with_plugin(optimizer, "", {{"framework", "colossalai"}, {"zero_stage", stage}});
    asked.erase("plugin");
    return codes(asked);
  };
  CHECK_THAT(without_plugin("came", "1"),
             Contains("columns-not-averaged") && Contains("residuals-aliased"));
  CHECK_THAT(without_plugin("adafactor", "1"),
             Contains("columns-not-averaged") && Contains("adafactor-rate"));
  CHECK_THAT(without_plugin("adafactor", "0"),
             !Contains("columns-not-averaged") && Contains("adafactor-rate"));
  CHECK_THAT(without_plugin("lamb", "1"), Contains("cast-to-distributed"));
  for (const char* casts : {"hybrid_parallel", "low_level_zero"}) {
    CHECK_THAT(codes(with_plugin("lamb", casts)), Contains("cast-to-distributed"));
    CHECK_THAT(codes(with_plugin("adafactor", casts)), Contains("adafactor-rate"));
  }
  for (const char* distributed : {"distributed_lamb", "adafactor", "came"}) {
    CHECK_THAT(codes(with_plugin(distributed, "torch_ddp")), Contains("plain-form"));
    CHECK_THAT(codes(with_plugin(distributed, "hybrid_parallel")), !Contains("plain-form"));
  }
  for (const char* plain : {"lamb", "adafactor", "came"})
    CHECK_THAT(codes(with_plugin(plain, "torch_ddp")), !Contains("cast-to-distributed") &&
                                                           !Contains("adafactor-rate") &&
                                                           !Contains("residuals-aliased"));
}

TEST_CASE("plugin: LAMB that a plugin casts to another optimizer is warned of") {
  for (const char* casts : {"hybrid_parallel", "low_level_zero"})
    CHECK(warnings(with_plugin("lamb", casts)) == std::vector<std::string>{"cast-to-distributed"});
  CHECK(warnings(with_plugin("lamb", "torch_ddp")).empty());
}

TEST_CASE("plugin: only LowLevelZero sums column means over the ranks that share states") {
  const auto column_sums = [](const char* optimizer, const char* plugin) {
    const Scenario scenario = resolved(with_plugin(optimizer, plugin, {{"zero_stage", "2"}}));
    std::int64_t calls = 0;
    for (const PlanOp& op : plan_step(scenario.training, {StepKind::uniform, 512, 1}).ops)
      if (op.name == "all_reduce columns of matrices") calls += op.times;
    return calls;
  };
  for (const char* factored : {"adafactor", "came"}) {
    CHECK(column_sums(factored, "hybrid_parallel") == 0);
    CHECK(column_sums(factored, "low_level_zero") > 0);
  }
  // A rank has a fraction of the matrices but whole calls, so the counts may differ by one.
  CHECK(std::abs(column_sums("came", "low_level_zero") -
                 2 * column_sums("adafactor", "low_level_zero")) <= 1);
}

TEST_CASE("plugin: a plugin sets its framework and stage, and refuses those of others") {
  const TrainingPlan zero = resolved(with_plugin("distributed_lamb", "low_level_zero")).training;
  CHECK(zero.parallelism->framework.name == FrameworkName::colossalai);
  CHECK(zero.recipe.zero.stage == 1);
  const auto refused = [](const char* plugin, const WhatIf& more) {
    return refusal(with_plugin("distributed_lamb", plugin, more));
  };
  CHECK_THAT(refused("low_level_zero", {{"tp", "2"}}), Contains("data parallelism only"));
  CHECK_THAT(refused("low_level_zero", {{"zero_stage", "0"}}), Contains("stages 1 and 2"));
  CHECK_THAT(refused("torch_ddp", {{"zero_stage", "1"}}), Contains("shares nothing"));
  CHECK_THAT(refused("hybrid_parallel", {{"zero_stage", "3"}}), Contains("states and gradients"));
  CHECK_THAT(refused("torch_ddp", {{"framework", "megatron"}}), Contains("is Colossal-AI's"));
  CHECK_THAT(refusal(with_plugin("adamw", "gemini")), Contains("no model of Gemini's chunks"));
}

}  // namespace
}  // namespace lambcast
