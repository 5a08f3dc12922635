#include "models/training/price/backend_limit.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/training/run/forecast.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

TrainingPlan with_backend(const char* cluster, int gpus, const char* word, bool cuda_aware) {
  TrainingPlan training = training_of({OptimizerType::onebit_lamb, gpus, cluster});
  training.recipe.backend = backend_of(word, cuda_aware);
  return training;
}

TEST_CASE("backend limit: compressed runs on no NVIDIA GPU, and device buffers need InfiniBand") {
  for (const char* cluster : {"commodity-10gbe", "dgx-a100-80g", "hgx-h100-ndr"}) {
    INFO(cluster);
    CHECK_FALSE(why_backend_fails(with_backend(cluster, 16, "nccl", false)));
    CHECK_FALSE(why_backend_fails(with_backend(cluster, 16, "mpi", false)));
    CHECK(why_backend_fails(with_backend(cluster, 16, "compressed", false)));
    const bool tcp = std::string_view(cluster) == "commodity-10gbe";
    CHECK(why_backend_fails(with_backend(cluster, 16, "mpi", true)).has_value() == tcp);
  }
  // A single node sends nothing over the network.
  CHECK_FALSE(why_backend_fails(with_backend("commodity-10gbe", 4, "mpi", true)));
}

TEST_CASE("backend limit: plain optimizers exchange nothing by these backends") {
  TrainingPlan training = training_of({OptimizerType::lamb, 16, "commodity-10gbe"});
  training.recipe.backend = Backend::compressed;
  CHECK_FALSE(why_backend_fails(training));
}

TEST_CASE("judge: a failing backend is reported, with one verdict") {
  const auto codes_of = [](const TrainingPlan& training) {
    CollectiveCosts costs;
    const Forecast of = forecast(training, costs);
    std::vector<std::string> codes;
    for (const Finding& finding : judge(training, of)) codes.push_back(finding.code);
    const bool warned = std::ranges::find(codes, "compression-loses") != codes.end();
    CHECK(warned == (of.run.speedup->high < 1));
    return codes;
  };
  const auto failing = codes_of(with_backend("dgx-a100-80g", 16, "compressed", false));
  CHECK(std::ranges::find(failing, "backend-fails") != failing.end());
  for (const char* cluster : {"dgx2h-v100", "paper-edr100-v100", "aws-p4d", "commodity-100gbe"}) {
    INFO(cluster);
    const auto codes = codes_of(with_backend(cluster, 16, "nccl", false));
    CHECK(std::ranges::find(codes, "backend-fails") == codes.end());
  }
}

}  // namespace
}  // namespace lambcast
