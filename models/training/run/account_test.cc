#include "models/training/run/account.h"

#include <catch2/catch.hpp>

#include "models/training/run/layout_case.h"
#include "models/training/run/step.h"

namespace lambcast {
namespace {

// Stages run at the same time; time that is not in any other part is exposed communication.
TEST_CASE("account: the parts of a pipeline's step add up, with compression too") {
  for (const char* exchange : {"all_reduce", "int8"}) {
    TrainingPlan training = layout_training({.dp = 4, .pp = 2});
    training.exchange = parse_exchange(exchange, {});
    CollectiveCosts costs;
    const StepMetrics of = run_step(training, {StepKind::uniform, 1000, 1}, costs).metrics;
    INFO(exchange);
    CHECK((of.compress > Duration()) == (training.exchange.kind != ExchangeKind::all_reduce));
    CHECK((of.forward + of.backward + of.exposed_comm + of.compress + of.decompress + of.optimizer +
           of.bubble)
              .s() == Approx(of.step_time.s()));
  }
}

}  // namespace
}  // namespace lambcast
