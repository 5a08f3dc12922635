#include "models/training/plan/activation_calls.h"

#include <catch2/catch.hpp>
#include <optional>

#include "models/training/run/layout_case.h"

namespace lambcast {
namespace {

TEST_CASE("activation calls: activations of fp32 training travel in 4 bytes") {
  const auto bytes = [](const LayoutCase& of, MatrixFormat format) {
    TrainingPlan training = layout_training(of);
    training.parallelism->format = format;
    const PipelinePlan plan = *plan_step(training, {StepKind::uniform, 1024, 1}).pipeline;
    double sum = 0;
    for (const std::optional<Call>& call : {plan.activations.sum, plan.activations.gather,
                                            plan.activations.scatter, plan.keys_values})
      if (call) sum += call->bytes.value();
    for (const Call& send : plan.sends) sum += send.bytes.value();
    return sum;
  };
  for (const LayoutCase& of : {LayoutCase{.tp = 5}, LayoutCase{.tp = 5, .sequence_parallel = true},
                               LayoutCase{.cp = 2}, LayoutCase{.pp = 2}}) {
    CHECK(bytes(of, MatrixFormat::half) > 0);
    CHECK(bytes(of, MatrixFormat::single) == 2 * bytes(of, MatrixFormat::half));
  }
}

}  // namespace
}  // namespace lambcast
