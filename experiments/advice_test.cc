#include "experiments/advice.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf question(const char* cluster, const char* gpus, const char* optimizer) {
  return {{"model", "bert-large"},  {"cluster", cluster},    {"gpus", gpus},
          {"optimizer", optimizer}, {"micro_batch", "16"},   {"grad_accum", "1"},
          {"steps", "6000"},        {"freeze_step", "16.7%"}};
}

TEST_CASE("advice: on a slow Ethernet compression pays, and a faster NIC ends that") {
  Catalog catalog;
  const Advice advice = advise(question("paper-edr100-v100", "64", "adam"), catalog);
  CHECK(advice.optimizer == "onebit_adam");
  CHECK(advice.baseline == "adam");
  REQUIRE(advice.backends.size() == 4);
  for (std::size_t i = 1; i < 4; ++i)
    CHECK(advice.backends[i - 1].time_s <= advice.backends[i].time_s);
  CHECK(advice.backends.front().speedup > 1);
  CHECK(advice.backends.front().speedup < advice.most_speedup);
  // At the break-even bandwidth both runs take equally long, by a forecast of its own.
  const Advice lamb = advise(question("paper-edr100-v100", "64", "lamb"), catalog);
  REQUIRE(lamb.break_even.has_value());
  WhatIf at = question("paper-edr100-v100", "64", "onebit_lamb");
  at["backend"] = lamb.backends.front().backend;
  at["cluster.nic.bandwidth"] = fmt::format("{} bit/s", lamb.break_even->value() * 8);
  CollectiveCosts costs;
  const Scenario scenario = resolve(at, catalog);
  CHECK(forecast(scenario.training, costs).run.speedup_vs_baseline == Approx(1).epsilon(1e-3));
  CHECK_THAT(advice_text(lamb), Contains("stops paying above"));
}

TEST_CASE("advice: one GPU has nothing to compress") {
  Catalog catalog;
  const Advice advice = advise(question("paper-eth40-v100", "1", "onebit_lamb"), catalog);
  CHECK(advice.exposed_share == 0);
  CHECK(advice.most_speedup == 1);
  CHECK_FALSE(advice.break_even.has_value());
  CHECK_THAT(advice_text(advice), Contains("No: onebit_lamb takes"));
  CHECK_THAT(advice_json(advice), Contains("\"break_even_nic_bandwidth_Gbps\": null"));
}

}  // namespace
}  // namespace lambcast
