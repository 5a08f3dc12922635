#include "models/training/plan/step_start.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "models/training/plan/layout_contents.h"
#include "models/training/plan/step_plan.h"
#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {

using parallel::Sharding;

// Returns bytes by name for a rank with 700 elements in its blocks, 90 in norms and 210 in the
// vocabulary.
std::map<std::string, double> starts_with(const TrainingPlan& training) {
  parallel::RankParameters held;
  held.divided = 910, held.whole = 90, held.vocabulary = 210;
  std::map<std::string, double> bytes;
  for (const StepPart& part : step_start(*training.parallelism, training.optimizer(), false, held))
    bytes[part.name] = std::get<MemoryWork>(part.work).bytes;
  return bytes;
}

TEST_CASE("step start: gradients are cleared, matrices of blocks quantized once") {
  TrainingPlan training = layout_training({.dp = 2, .sharding = Sharding::optimizer});
  Parallelism& how = *training.parallelism;
  CHECK(starts_with(training) == std::map<std::string, double>{{"clear gradients", 4000}});
  how.framework.fp32_gradients = false;
  how.format = MatrixFormat::fp8;
  CHECK(starts_with(training) ==
        std::map<std::string, double>{{"clear gradients", 2000}, {"quantize weights", 4 * 700}});
  how.format = MatrixFormat::nvfp4;
  CHECK(starts_with(training).at("quantize weights") == 3 * 700);

  // Both operations precede the gather of the first weights, which the passes wait for.
  const StepPlan plan = plan_step(training, {StepKind::uniform, 1024, 1});
  REQUIRE(plan.ops.size() > 3);
  CHECK(plan.ops[0].name == "clear gradients");
  CHECK(plan.ops[1].name == "quantize weights");
  CHECK(plan.ops[2].name == "all_gather weights of the last step");
  CHECK(plan.ops[2].after == std::vector<OpId>{1});
}

TEST_CASE("step start: no work with sharded weights, nor if each step has its own buffers") {
  TrainingPlan training = layout_training({.dp = 2, .sharding = Sharding::weights});
  training.parallelism->format = MatrixFormat::fp8;
  CHECK(starts_with(training).empty());
  training = layout_training({.dp = 2, .framework = FrameworkName::deepspeed});
  CHECK(starts_with(training).empty());
  training = layout_training({.dp = 2});
  training.recipe.optimizer = OptimizerType::lamb;
  CHECK(starts_with(training).empty());
}

TEST_CASE("step start: its work is done once per step, for any number of micro batches") {
  const auto ms = [](std::int64_t micro_batches, bool keeps_buffers) {
    TrainingPlan training = layout_training({.micro_batches = micro_batches});
    training.parallelism->framework.keeps_buffers = keeps_buffers;
    CollectiveCosts costs;
    return run_step(training, {StepKind::uniform, 1024, 1}, costs).metrics.step_time.ms();
  };
  CHECK(ms(2, true) - ms(2, false) == Approx(ms(8, true) - ms(8, false)));
  // 1.56 G elements of 4 bytes at 1.77 TB/s.
  CHECK(ms(2, true) - ms(2, false) == Approx(3.5).epsilon(0.05));
}

}  // namespace
}  // namespace lambcast
