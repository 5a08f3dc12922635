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

TEST_CASE("advice: who runs a plain optimizer is told which warm-up is assumed") {
  Catalog catalog;
  WhatIf plain = question("commodity-10gbe", "32", "lamb");
  plain.erase("freeze_step");
  const Advice assumed = advise(plain, catalog);
  CHECK_THAT(advice_text(assumed), Contains("and a warm-up of 20% of the run (assumed)"));
  CHECK_THAT(advice_json(assumed), Contains("\"warmup_assumed\": true"));
  plain["freeze_step"] = "20%";
  const Advice given = advise(plain, catalog);
  CHECK_THAT(advice_text(given), !Contains("assumed)."));
  CHECK(given.backends.front().speedup == assumed.backends.front().speedup);
}

TEST_CASE("advice: a run that is all warm-up is told so") {
  Catalog catalog;
  WhatIf forgotten = question("commodity-10gbe", "32", "onebit_lamb");
  forgotten.erase("freeze_step");
  CHECK_THAT(advice_text(advise(forgotten, catalog)),
             Contains("No: nothing is compressed, the warm-up fills the whole run of 6000 steps"));
}

TEST_CASE("advice: says what the run itself gives to think about") {
  Catalog catalog;
  WhatIf shallow = question("commodity-10gbe", "256", "onebit_adam");
  shallow["cluster.nic.port_queue"] = "64KiB";
  CHECK_THAT(advice_text(advise(shallow, catalog)), Contains("[incast]"));
  CHECK_THAT(advice_json(advise(shallow, catalog)), Contains("\"incast\""));
  CHECK_THAT(advice_text(advise(shallow, catalog)), Contains("communication not calibrated"));
  CHECK_THAT(advice_json(advise(shallow, catalog)), Contains("step_time_high_us"));
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
