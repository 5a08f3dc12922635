#include "models/training/plan/exchange_workspace.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/training/memory/memory.h"
#include "models/training/plan/optimizer_state.h"
#include "models/training/run/training_case.h"

namespace lambcast {
namespace {

TrainingPlan with(const char* exchange, Kernels kernels) {
  TrainingPlan training = training_of({OptimizerType::adam, 8});
  training.exchange = parse_exchange(exchange, {});
  training.kernels = kernels;
  return training;
}

double workspace(const char* exchange, Kernels kernels) {
  const TrainingPlan training = with(exchange, kernels);
  return exchange_workspace_bytes(training, averaged_gradients(training));
}

TEST_CASE(
    "exchange workspace: gradients in fp32, messages in both directions, and scratch space of "
    "kernels") {
  const TrainingPlan plain = with("all_reduce", Kernels::fused);
  const double all = averaged_gradients(plain).elements, n = 8;
  const double kept = std::ceil(0.01 * all);
  struct Row {
    const char* exchange;
    double fused, pytorch;
  };
  for (const Row& row :
       {Row{"all_reduce", 0, 0},
        {"local:16", 0, 0},
        {"localsgd:16", 0, 0},
        {"neighbours:ring", 0, 0},
        {"bf16", 2 * all, 2 * all},
        {"onebit", 4.25 * all, 5.25 * all},
        {"fp8", (4 + 2 + 4 / n) * all, (4 + 2 + 4 / n) * all},
        {"int8:owed", (4 + 2 + 4 / n) * all, (4 + 2 + 4 / n) * all},
        {"int4", (4 + 1 + 4 / n) * all, (4 + 1 + 4 / n) * all},
        {"topk:1%", 4 * all + 8 * kept * (n + 1) + 16 * kept + all / 64 + 0.27e6,
         8 * all + 8 * kept * (n + 1)},
        {"randomk:1%", 4 * all + 8 * kept, 4 * all + 8 * kept},
        {"lossless:50%", 2 * all, 2 * all},
        {"chunktopk:64", (4 + 9 * 0.21875 / 8) * all, (4 + 9 * 0.21875 / 8) * all}}) {
    INFO(row.exchange);
    CHECK(workspace(row.exchange, Kernels::fused) == Approx(row.fused));
    CHECK(workspace(row.exchange, Kernels::deepspeed) == Approx(row.pytorch));
  }
  const auto of_levels = [&](Kernels kernels) {
    TrainingPlan training = with("qgz:int8", kernels);
    training.recipe.zero.stage = 1;
    training.gpus_per_node = 4;
    return exchange_workspace_bytes(training, averaged_gradients(training));
  };
  CHECK(of_levels(Kernels::fused) == Approx((4 + 2 + 4 / 4. + 4 / n) * all));
  CHECK(of_levels(Kernels::deepspeed) == Approx(2 * all));
  const ModelShape& bert = *plain.model;
  double elements = 0, rows = 0, columns = 0, sums = 0;
  for (const Tensor& tensor : bert.tensors) {
    const StateTensor of = state_tensor(bert, tensor);
    if (of.rows == 0 || 4 * (of.rows + of.columns) >= of.elements / 2) continue;
    elements += of.elements;
    rows += of.rows;
    columns += of.columns;
    sums = std::max(sums, std::ceil(of.rows / 256) * of.columns);
  }
  CHECK(workspace("powersgd:4", Kernels::deepspeed) == Approx(4 * elements + 16 * rows));
  CHECK(workspace("powersgd:4", Kernels::fused) == Approx(4 * elements + 16 * rows + 32 * sums));
  CHECK(workspace("powersgd:4:2", Kernels::deepspeed) ==
        Approx(4 * elements + 16 * (rows + columns)));
}

TEST_CASE("exchange workspace: the memory forecast counts it, and one rank needs none") {
  const auto peak = [](const char* exchange) {
    return forecast_memory(with(exchange, Kernels::fused)).peak.value();
  };
  const TrainingPlan topk = with("topk:1%", Kernels::fused);
  CHECK(peak("topk:1%") - peak("all_reduce") ==
        Approx(workspace("topk:1%", Kernels::fused) +
               exchange_state_bytes(topk, averaged_gradients(topk))));
  TrainingPlan alone = topk;
  alone.gpus = 1;
  CHECK(exchange_workspace_bytes(alone, averaged_gradients(alone)) == 0);
}

}  // namespace
}  // namespace lambcast
