#include "models/training/price/cost_source.h"

#include <catch2/catch.hpp>
#include <map>

#include "models/training/run/forecast.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

std::map<std::string, double> shares_of(const TrainingPlan& training) {
  CollectiveCosts costs;
  std::map<std::string, double> shares;
  for (const CostSource& source : forecast(training, costs).sources.shares())
    shares[std::string(source.cost)] = source.share;
  return shares;
}

// 1-bit Adam in fp32 exchanges every tensor separately, and many tensors have the same size. A call
// that is priced once and made n times counts n times.
TEST_CASE("cost sources: a call that is priced once counts as often as it is made") {
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

// The eight GPUs of a node have 300 GB/s of NVLink and 1.2 GB/s of NIC: only the NIC determines the
// time. Within one node the links do.
TEST_CASE("cost sources: time counts for the links or NICs that determine it") {
  TrainingPlan training = training_of(
      {OptimizerType::adam, 16, "dgx1-v100", "bert-large", {{"nic.bandwidth", "10Gbit/s"}}});
  const std::map<std::string, double> between = shares_of(training);
  CHECK(between.at("nic_bandwidth") > 0.5);
  CHECK(between.at("gpu_link") < 0.01);
  CHECK(between.at("nccl_latency") < 0.05);
  const std::map<std::string, double> inside =
      shares_of(training_of({OptimizerType::adam, 8, "dgx1-v100"}));
  CHECK(inside.at("gpu_link") > 0.05);
  CHECK(inside.count("nic_bandwidth") == 0);
}

TEST_CASE("cost sources: a run has the costs of its steps, each once, and the weakest counts") {
  const auto seconds = [](double s) { return Duration::seconds(s); };
  const Provenance measured{Kind::measured, "x"}, published{Kind::published, "y"};
  CostSources warm_up, compression;
  warm_up.read("a", measured);
  warm_up.read("b", published);
  warm_up.spend(seconds(1));
  warm_up.read("a", measured);
  warm_up.spend(seconds(3));
  compression.read("c", {Kind::assumed, "z"});
  compression.read("b", published);
  compression.spend(seconds(0.5));
  compression.read("a", measured);
  compression.spend(seconds(0.5));
  CHECK(RunSources(warm_up).weakest() == Kind::published);
  RunSources run;
  run.add(std::make_shared<const CostSources>(warm_up), 10);
  run.add(std::make_shared<const CostSources>(compression), 60);
  const std::vector<CostSource> shares = run.shares();
  REQUIRE(shares.size() == 3);
  CHECK(shares[0].cost == "a");
  CHECK(shares[0].share == Approx(70. / 100));
  CHECK(shares[1].cost == "b");
  CHECK(shares[1].share == Approx(40. / 100));
  CHECK(shares[1].provenance == published);
  CHECK(shares[2].cost == "c");
  CHECK(shares[2].share == Approx(30. / 100));
  CHECK(run.weakest() == Kind::assumed);
  // A cost of less than a hundredth of the time does not determine the weakest kind.
  RunSources warm;
  warm.add(std::make_shared<const CostSources>(warm_up), 1000);
  warm.add(std::make_shared<const CostSources>(compression), 1);
  CHECK(warm.weakest() == Kind::published);
}

}  // namespace
}  // namespace lambcast
