#include "experiments/output/explain.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "experiments/scenario/scenario_case.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

TrainingPlan onebit_lamb() {
  Catalog catalog;
  return resolve({{"model", "bert-large"},
                  {"cluster", "commodity-10gbe"},
                  {"gpus", "16"},
                  {"optimizer", "onebit_lamb"},
                  {"micro_batch", "16"},
                  {"grad_accum", "4"},
                  {"steps", "1000"},
                  {"freeze_step", "200"}},
                 catalog)
      .training;
}

TEST_CASE("explain: the plan names what a step does, stage by stage") {
  const std::string plan = explain(onebit_lamb(), "plan");
  for (const char* words : {"warmup step, 199 times", "compression step, 801 times",
                            "all_reduce gradients", "all_to_all signs", "a micro batch"})
    CHECK_THAT(plan, Catch::Contains(words));
  CHECK_THAT(plan, !Catch::Contains("_us"));
}

TEST_CASE("explain: the plan names transfers to the host, and products of an optimizer") {
  const auto plan_of = [](const WhatIf& changes) {
    return explain(resolved(with(changes, without({"freeze_step"}))).training, "plan");
  };
  CHECK_THAT(plan_of({{"optimizer", "adam"}, {"zero_stage", "2"}, {"offload_optimizer", "cpu"}}),
             Catch::Contains("gradients to the host: ") && Catch::Contains(" up, pinned\n") &&
                 Catch::Contains("of host memory, 4 ranks at once") &&
                 Catch::Contains("weights to the GPU: 0 B down, "));
  CHECK_THAT(plan_of({{"optimizer", "galore_adamw8bit"}}),
             Catch::Contains("products of the optimizer: ") && Catch::Contains(" % of the peak\n"));
}

TEST_CASE("explain: prices add up to the step if nothing overlaps, and have their sources") {
  const TrainingPlan training = onebit_lamb();
  const std::string prices = explain(training, "prices");
  CHECK_THAT(prices, Catch::Contains("compression_kernels (assumed)"));
  CHECK_THAT(prices, Catch::Contains("sync_overhead (assumed)"));
  CollectiveCosts costs;
  for (const StepForecast& step : forecast(training, costs).steps)
    CHECK_THAT(prices, Catch::Contains(fmt::format("step {:.3f} us", step.step_time_us)));
}

TEST_CASE("explain: prices name the algorithm and the protocol of each collective") {
  const auto of_nic = [](const char* nic) {
    Catalog catalog;
    return explain(resolve({{"model", "bert-large"},
                            {"cluster", "azure-ndv2"},
                            {"cluster.nic.bandwidth", nic},
                            {"gpus", "16"},
                            {"optimizer", "lamb"},
                            {"micro_batch", "16"},
                            {"steps", "6000"}},
                           catalog)
                       .training,
                   "prices");
  };
  // NCCL's tuning switches from tree to ring between 110 and 150 Gbit/s, and the step becomes
  // slower.
  CHECK_THAT(of_nic("110Gbit/s"), Catch::Contains("all_reduce gradients by tree/Simple: "));
  // Shortly after the switch, the alternative is named with its time.
  CHECK_THAT(of_nic("150Gbit/s"),
             Catch::Contains("all_reduce gradients by ring/Simple (or tree/Simple, 52223.538 us "));
}

TEST_CASE("explain: stats count the cost queries and cache hits; other words are refused") {
  const std::string stats = explain(onebit_lamb(), "stats");
  CHECK_THAT(stats,
             Catch::Contains("found in the cache") && Catch::Contains("took: plan ") &&
                 Catch::Contains(" us, price ") && Catch::Contains(" us, execute ") &&
                 Catch::Contains(" us, account ") && Catch::Contains("\nof which: routes of ") &&
                 Catch::Contains(" us, lowering of ") && !Catch::Contains("routes of 0 flows") &&
                 !Catch::Contains("lowering of 0 schedules"));
  CHECK_THROWS_WITH(explain(onebit_lamb(), "price"), Catch::Contains("did you mean 'prices'"));
}

TrainingPlan divided() {
  Catalog catalog;
  return resolve({{"model", "llama2-7b"},
                  {"cluster", "hgx-h100-ndr"},
                  {"gpus", "64"},
                  {"tp", "4"},
                  {"pp", "4"},
                  {"network", "flow"},
                  {"optimizer", "adamw"},
                  {"micro_batch", "1"},
                  {"grad_accum", "8"},
                  {"steps", "10"}},
                 catalog)
      .training;
}

TEST_CASE("explain: stats count events, flows and solves of a network with overlapping calls") {
  const std::string stats = explain(divided(), "stats");
  CHECK_THAT(stats, !Catch::Contains("events 0,"));
  CHECK_THAT(stats, !Catch::Contains("flows started 0,"));
}

TEST_CASE(
    "explain: a plan names the stage and group of each operation, and the calls inside "
    "passes") {
  const std::string plan = explain(divided(), "plan");
  // Bytes of an all_reduce: 2 bytes x 4096 tokens x 4096 = 33.55 MB.
  for (const char* words :
       {" stage ", "tensor parallel, activations summed, all_reduce of 33.55 MB over 4 ranks",
        "(4 per node", "stride 4", "stage 0: 8 blocks, embedding", "stages 1 to 2, each: 8 blocks",
        "stage 3: 8 blocks, head", "to the next stage"})
    CHECK_THAT(plan, Catch::Contains(words));
}

TEST_CASE("explain: a plan with experts names the exchange of their tokens") {
  Catalog catalog;
  const TrainingPlan training = resolve({{"model", "mixtral-8x7b"},
                                         {"cluster", "hgx-h100-ndr"},
                                         {"gpus", "16"},
                                         {"ep", "8"},
                                         {"framework", "megatron"},
                                         {"imbalance", "1"},
                                         {"optimizer", "adamw"},
                                         {"micro_batch", "1"},
                                         {"grad_accum", "4"},
                                         {"seq_len", "4096"},
                                         {"steps", "10"}},
                                        catalog)
                                    .training;
  // Bytes of an all_to_all: 2 bytes x 4096 tokens x 2 experts x 4096 = 67.11 MB.
  CHECK_THAT(explain(training, "plan"),
             Catch::Contains("tokens to experts and back, all_to_all of 67.11 MB over 8 ranks"));
  // The prices have a line for this exchange, with interval and sources.
  const std::string prices = explain(training, "prices");
  const auto at = prices.find("tokens to experts and back, all_to_all of 67.11 MB over 8 ranks");
  REQUIRE(at != std::string::npos);
  const std::string line = prices.substr(at, prices.find('\n', at) - at);
  CHECK_THAT(line, Catch::Contains(" us (") && Catch::Contains(") each by ") &&
                       Catch::Contains("gpu_link ("));
}

}  // namespace
}  // namespace lambcast
