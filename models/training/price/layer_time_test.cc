#include "models/training/price/layer_time.h"

#include <catch2/catch.hpp>

#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

// qwen3-30b-a3b with `layers` layers on one DGX A100, with experts distributed over its GPUs. With
// few tokens the host is slower than the kernels that it starts.
LayerTime layer(const char* layers, std::int64_t tokens, double launch = 1) {
  TrainingPlan training = training_of({OptimizerType::adamw, 8, "dgx-a100-80g"});
  const std::vector<ModelOverride> so_many{{"model.layers", layers}};
  training.model = std::make_shared<const ModelShape>(load_model("qwen3-30b-a3b", so_many));
  Device device = *training.device;
  device.framework_launch.value = device.framework_launch.value.scaled(launch);
  training.device = std::make_shared<const Device>(device);
  training.seq_len = tokens;
  training.batch = {16, 2, 1};
  Parallelism how;
  how.layout.ep = how.layout.dp = how.layout.gpus_per_node = 8;
  how.framework = framework_of(FrameworkName::megatron);
  training.parallelism = how;
  training.kernels = Kernels::nvidia;
  CollectiveCosts costs;
  return layer_time(training, costs).value();
}

TEST_CASE(
    "layer time: a layer takes the same time in models of two and ten layers, also if the host is "
    "slow") {
  for (const std::int64_t tokens : {64, 4096}) {
    INFO(tokens);
    const LayerTime two = layer("2", tokens), ten = layer("10", tokens);
    CHECK(two.forward.us() == Approx(ten.forward.us()));
    CHECK(two.backward.us() == Approx(ten.backward.us()));
    CHECK(two.forward_interval.low < two.forward);
    CHECK(two.backward_interval.high > two.backward);
  }
  // The backward pass has two products for each one of the forward pass.
  const LayerTime busy = layer("2", 4096);
  CHECK(busy.backward > busy.forward.scaled(1.5));
  CHECK(busy.backward < busy.forward.scaled(2.5));
  CHECK(layer("10", 64, 2).backward.us() > 1.3 * layer("10", 64).backward.us());
  CHECK(layer("10", 64, 2).forward.us() > 1.3 * layer("10", 64).forward.us());
  TrainingPlan plain = training_of({OptimizerType::adamw, 8, "dgx-a100-80g"});
  CollectiveCosts costs;
  CHECK_FALSE(layer_time(plain, costs));
}

}  // namespace
}  // namespace lambcast
