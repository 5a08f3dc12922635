#include "models/training/cost_source.h"

#include <catch2/catch.hpp>
#include <map>

#include "models/training/forecast.h"
#include "models/training/training_case.h"

namespace lambcast {
namespace {

std::map<std::string, double> shares_of(const TrainingPlan& training) {
  CollectiveCosts costs;
  std::map<std::string, double> shares;
  for (const CostSource& source : forecast(training, costs).sources)
    shares[std::string(source.cost)] = source.share;
  return shares;
}

// 1-bit Adam in fp32 exchanges every tensor by itself, many of them alike: a call that is priced
// once and made n times waits n times.
TEST_CASE("cost sources: what is priced once counts as often as it is done") {
  TrainingPlan training = training_of({OptimizerType::onebit_adam, 8});
  training.recipe.precision.weights = DataType::fp32;
  training.recipe.backend = Backend::mpi_host;
  const std::map<std::string, double> together = shares_of(training);
  training.expand = true;
  const std::map<std::string, double> apart = shares_of(training);
  REQUIRE(together.size() == apart.size());
  CHECK(together.at("sync_overhead") > 0.01);
  for (const auto& [cost, share] : together) {
    INFO(cost);
    CHECK(share == Approx(apart.at(cost)).epsilon(1e-6).margin(1e-9));
  }
}

}  // namespace
}  // namespace lambcast
