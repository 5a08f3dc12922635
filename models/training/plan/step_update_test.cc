#include "models/training/plan/step_update.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {

// A layout that only adds tensor parallelism leaves DeepSpeed's own work per element as it is.
TEST_CASE("step update: DeepSpeed's update and copies are those of a job without a layout") {
  for (const auto& [weights, stage] : std::vector<std::pair<DataType, int>>{{DataType::fp16, 0},
                                                                            {DataType::bf16, 0},
                                                                            {DataType::fp32, 0},
                                                                            {DataType::fp16, 1},
                                                                            {DataType::bf16, 1}})
    for (const bool in_fp32 : {false, true}) {
      INFO(bytes_of(weights) << " bytes, stage " << stage << ", sums in fp32 " << in_fp32);
      TrainingPlan training = layout_training(
          {.tp = 2,
           .dp = 4,
           .sharding = stage > 0 ? parallel::Sharding::optimizer : parallel::Sharding::none,
           .framework = FrameworkName::deepspeed});
      training.recipe.precision.weights = weights;
      training.recipe.zero.stage = stage;
      training.recipe.engine.wraps_bf16_as_fp16 = !in_fp32;
      TrainingPlan plain = training;
      plain.parallelism.reset();
      plain.gpus = 4;
      // Bytes per element and tensors of each pass; copies of buckets have sizes of their own.
      const auto work_of = [](const auto& of) {
        std::map<std::string, std::pair<double, double>> work;
        for (const PlanOp& op : plan_step(of, {StepKind::uniform, 1024, 1}).ops) {
          if (const auto* kernels = std::get_if<KernelWork>(&op.work))
            work[op.name] = {kernels->passes.bytes_per_element, kernels->tensors};
          if (std::holds_alternative<MemoryWork>(op.work)) work[op.name] = {};
        }
        return work;
      };
      CHECK(work_of(training).contains("scale and copy back"));
      CHECK(work_of(training) == work_of(plain));
    }
}

TEST_CASE("step update: the dry run of a 1-bit optimizer updates nothing") {
  TrainingPlan training = layout_training({.tp = 2, .dp = 4});
  training.recipe.optimizer = OptimizerType::onebit_adam;
  const auto updates = [&](StepKind kind) {
    const std::vector<PlanOp> ops = plan_step(training, {kind, 1024, 1}).ops;
    return std::ranges::count(ops, "optimizer", &PlanOp::name);
  };
  CHECK(updates(StepKind::dry_run) == 0);
  CHECK(updates(StepKind::warmup) == 1);
}

}  // namespace
}  // namespace lambcast
