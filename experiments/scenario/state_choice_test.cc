#include "experiments/scenario/state_choice.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "models/training/memory/memory.h"
#include "models/training/plan/step_plan.h"

namespace lambcast {
namespace {

using Catch::Contains;

TrainingPlan on_h100(const WhatIf& changes) {
  WhatIf what_if{{"model", "llama2-7b"},    {"cluster", "hgx-h100-ndr"}, {"gpus", "16"},
                 {"optimizer", "adamw"},    {"micro_batch", "1"},        {"grad_accum", "2"},
                 {"framework", "megatron"}, {"zero_stage", "1"},         {"precision", "bf16"},
                 {"steps", "100"}};
  return resolved(with(changes, what_if)).training;
}

double gathered_bytes_of(const TrainingPlan& training) {
  double bytes = 0;
  const StepPlan plan = plan_step(training, distinct_steps(training).front());
  for (const PlanOp& op : plan.ops)
    if (const Call* call = std::get_if<Call>(&op.work); call && call->op == Op::all_gather)
      bytes += call->bytes.value() * static_cast<double>(op.times);
  return bytes;
}

double update_bytes_of(const TrainingPlan& training) {
  const StepPlan plan = plan_step(training, distinct_steps(training).front());
  const auto update = std::ranges::find(plan.ops, "optimizer", &PlanOp::name);
  REQUIRE(update != plan.ops.end());
  return std::get<KernelWork>(update->work).passes.bytes_per_element;
}

double optimizer_memory_of(const TrainingPlan& training) {
  double bytes = 0;
  for (const auto& [part, of_part] : forecast_memory(training).parts)
    if (part == "master_weights" || part == "momentum" || part == "variance")
      bytes += of_part.value();
  return bytes;
}

// All weights except the two vocabularies of 32,000 x 4,096 are gathered in half the bytes.
TEST_CASE("state choice: weights in fp8 are gathered in one byte") {
  const WhatIf fp8{{"precision", "fp8"}};
  const double usual = gathered_bytes_of(on_h100(fp8));
  const double outer = 2 * 2.0 * 32000 * 4096;
  const double narrow =
      gathered_bytes_of(on_h100({{"precision", "fp8"}, {"fp8_weight_gather", "true"}}));
  CHECK(narrow == Approx(outer + (usual - outer) / 2).epsilon(1e-6));
  CHECK_THROWS_WITH(on_h100({{"fp8_weight_gather", "true"}}), Contains("multiplied in fp8"));
  const WhatIf torchtitan{{"precision", "fp8"}, {"framework", "torchtitan"}, {"zero_stage", "3"}};
  CHECK(on_h100(torchtitan).parallelism->fp8_gather);
  CHECK_FALSE(on_h100(with({{"fp8_weight_gather", "false"}}, torchtitan)).parallelism->fp8_gather);
}

// An update reads and writes each state once, and the memory holds it.
TEST_CASE("state choice: narrow states of Adam save bytes of updates and memory") {
  const double usual = update_bytes_of(on_h100({})), held = optimizer_memory_of(on_h100({}));
  const auto differ = [&](const char* types, double bytes) {
    INFO(types);
    const TrainingPlan narrow = on_h100({{"state_types", types}});
    CHECK(usual - update_bytes_of(narrow) == Approx(2 * (12 - bytes)).margin(1e-9));
    CHECK(optimizer_memory_of(narrow) / held == Approx(bytes / 12).epsilon(1e-6));
  };
  differ("fp32:fp32:fp32", 12);
  differ("bf16:bf16:fp32", 8);
  differ("bf16:bf16:rest", 6);
  differ("fp8:fp16:fp16", 5);
  for (const char* wrong : {"bf16", "bf16:bf16", "bf16:bf16:fp8", "int4:fp8:fp32", "a:b:c:d"})
    CHECK_THROWS_WITH(on_h100({{"state_types", wrong}}), Contains("is not a list of types"));
  CHECK_THROWS_WITH(on_h100({{"state_types", "bf16:bf16:rest"}, {"optimizer", "lion"}}),
                    Contains("applies only to Adam, not to lion"));
  CHECK_THROWS_WITH(on_h100({{"state_types", "bf16:bf16:rest"}, {"framework", "torchtitan"}}),
                    Contains("Transformer Engine"));
}

}  // namespace
}  // namespace lambcast
