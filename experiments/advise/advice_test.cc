#include "experiments/advise/advice_list.h"
#include "experiments/advise/advice_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/training/price/backend_limit.h"
#include "sim/base/csv.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf question(const char* cluster, const char* gpus, const char* optimizer) {
  return {{"model", "bert-large"},  {"cluster", cluster},    {"gpus", gpus},
          {"optimizer", optimizer}, {"micro_batch", "16"},   {"grad_accum", "1"},
          {"steps", "6000"},        {"freeze_step", "16.7%"}};
}

TEST_CASE("advice: compression pays on slow Ethernet, and not with a faster NIC") {
  Catalog catalog;
  const Advice advice = advise(question("paper-edr100-v100", "64", "adam"), catalog);
  CHECK(advice.optimizer == "onebit_adam");
  CHECK(advice.baseline == "adam");
  REQUIRE(advice.answer.backends.size() == 3);  // backend `compressed` needs Intel XPU
  CHECK(advice.answer.backends[1].time_s <= advice.answer.backends[2].time_s);
  CHECK(advice.answer.speedup().value > 1);
  CHECK(advice.answer.speedup().value < advice.most_speedup);
  // A separate forecast confirms that both runs take equally long at the break-even bandwidth.
  const Advice lamb = advise(question("paper-edr100-v100", "64", "lamb"), catalog);
  REQUIRE(lamb.answer.break_even.has_value());
  REQUIRE(lamb.answer.break_even->at.has_value());
  WhatIf at = question("paper-edr100-v100", "64", "onebit_lamb");
  at["backend"] = lamb.answer.backends.front().backend;
  at["cluster.nic.bandwidth"] = fmt::format("{} bit/s", lamb.answer.break_even->at->value() * 8);
  CollectiveCosts costs;
  const Scenario scenario = resolve(at, catalog);
  CHECK(forecast(scenario.training, costs).run.speedup_vs_baseline == Approx(1).epsilon(1e-3));
  CHECK_THAT(advice_text(lamb), Contains("does not pay above"));
}

TEST_CASE("advice: a requested backend is compared like the others, and the advice says so") {
  Catalog catalog;
  WhatIf asked = question("paper-edr100-v100", "64", "adam");
  const auto of_backend = [](const Advice& advice) {
    return std::ranges::count_if(advice.findings, [](const Finding& finding) {
      return finding.code == "flag-no-effect" && finding.message.starts_with("--backend: ");
    });
  };
  const Advice all = advise(asked, catalog);
  CHECK(of_backend(all) == 0);
  asked["backend"] = "mpi";
  const Advice one = advise(asked, catalog);
  CHECK(of_backend(one) == 1);
  CHECK(one.answer.backends.size() == all.answer.backends.size());
}

TEST_CASE(
    "advice: no backend that fails is ranked, and the simplest that may be fastest is named") {
  Catalog catalog;
  for (const char* cluster : {"commodity-10gbe", "paper-eth40-v100", "dgx-a100-80g"}) {
    INFO(cluster);
    const Advice advice = advise(question(cluster, "32", "onebit_lamb"), catalog);
    for (const BackendAdvice& backend : advice.answer.backends)
      CHECK_FALSE(why_backend_fails(resolve(backend.asked, catalog).training));
    CHECK_THAT(advice_text(advice), Contains("not here: compressed"));
    CHECK_THAT(explain_advice(advice, "backends"),
               Contains("compressed: not here: DeepSpeed has the operator"));
    // Every backend before the named one in the order of backend_traits() is certainly slower.
    const BackendAdvice& named = advice.answer.backends.front();
    const auto nccl = std::ranges::find(advice.answer.backends, "nccl", &BackendAdvice::backend);
    REQUIRE(nccl != advice.answer.backends.end());
    CHECK((named.backend == "nccl") ==
          (nccl->time_s <= named.time_s ||
           ratio_of(nccl->forecast.time, named.forecast.time,
                    common_sources(resolve(nccl->asked, catalog).training,
                                   resolve(named.asked, catalog).training))
                   .low <= 1));
  }
}

TEST_CASE("advice: with a plain optimizer, the assumed warm-up is stated") {
  Catalog catalog;
  WhatIf plain = question("commodity-10gbe", "32", "lamb");
  plain.erase("freeze_step");
  const Advice assumed = advise(plain, catalog);
  CHECK_THAT(advice_text(assumed), Contains("kernels and a warm-up of 20% of the run (assumed)"));
  CHECK_THAT(advice_json(assumed), Contains("\"warmup_assumed\": true"));
  plain["freeze_step"] = "20%";
  const Advice given = advise(plain, catalog);
  CHECK_THAT(advice_text(given), !Contains("assumed)."));
  CHECK(given.answer.speedup().value == assumed.answer.speedup().value);
}

TEST_CASE(
    "advice: an optimizer without a 1-bit form is compared with another one, which is named") {
  Catalog catalog;
  for (const auto& [optimizer, family] : {std::pair{"adafactor", "adam"},
                                          {"came", "adam"},
                                          {"galore_adamw8bit", "adam"},
                                          {"lars", "adam"},
                                          {"distributed_lamb", "lamb"}}) {
    const WhatIf asked = question("commodity-10gbe", "32", optimizer);
    const Advice advice = advise(asked, catalog);
    const std::string text = advice_text(advice);
    INFO(text);
    CHECK(advice.optimizer == fmt::format("onebit_{}", family));
    CHECK(advice.baseline == optimizer);
    CHECK(advice.family == family);
    CHECK_THAT(text, Contains(fmt::format("onebit_{0} (the 1-bit form of {0}, since {1} has none)",
                                          family, optimizer)) &&
                         Contains("[optimizer-swapped]"));
    // Every row of exchanges, also that of the 1-bit optimizer, is relative to the run of the
    // question.
    CollectiveCosts costs;
    const Forecast own = forecast(resolve(asked, catalog).training, costs);
    CHECK(advice.baseline_time_s == own.run.time_s);
    for (const char* name : {"all_reduce", "fp8", advice.optimizer.c_str()}) {
      const auto row = std::ranges::find(advice.exchanges, name, &ExchangeAdvice::name);
      REQUIRE(row != advice.exchanges.end());
      CHECK(row->run_s * row->speedup.value == Approx(own.run.time_s));
    }
    // The fused answer compares two runs with fused kernels.
    WhatIf with_fused = asked;
    with_fused["kernels"] = "fused";
    const Forecast own_fused = forecast(resolve(with_fused, catalog).training, costs);
    REQUIRE(advice.fused.has_value());
    CHECK(own_fused.run.time_s < own.run.time_s);
    CHECK(advice.fused->speedup().value ==
          Approx(own_fused.run.time_s / advice.fused->backends.front().time_s));
    CHECK_THAT(explain_advice(advice, "backends"),
               Contains(fmt::format("a step of {} with fused kernels,", optimizer)));
    // Changes only the optimizer, without compression.
    WhatIf kin = asked;
    kin["optimizer"] = family;
    const Forecast of_kin = forecast(resolve(kin, catalog).training, costs);
    CHECK_THAT(text, Contains(fmt::format("to {} alone makes the run {:.2f}x", family,
                                          own.run.time_s / of_kin.run.time_s)));
  }
  for (const char* own : {"adam", "adamw", "lamb", "zero_one_adam"}) {
    const Advice advice = advise(question("commodity-10gbe", "32", own), catalog);
    CHECK_FALSE(advice.family.has_value());
    CHECK_THAT(advice_text(advice), !Contains("1-bit form"));
  }
}

TEST_CASE(
    "advice: a run that hardly compresses is not judged, and its text states no break-even and no "
    "cost") {
  Catalog catalog;
  const auto not_judged = [&](const WhatIf& what_if, const char* share) {
    const Advice advice = advise(what_if, catalog);
    INFO(advice_text(advice));
    CHECK_FALSE(advice.judged());
    CHECK_THAT(
        advice_text(advice),
        Catch::StartsWith(fmt::format("Not judged: only {} % of the 6000 steps compress", share)) &&
            Contains("--steps") && Contains("--freeze-step 20%") && !Contains("NIC bandwidth") &&
            !Contains("USD") && !Contains("Against a"));
    CHECK_THAT(advice_json(advice), Contains("\"judged\": false") &&
                                        Contains("\"break_even_nic_bandwidth_Gbps\": null") &&
                                        Contains("\"cost_usd\": null") &&
                                        Contains("\"baseline_cost_usd\": null"));
  };
  WhatIf run = question("aws-p3dn", "32", "onebit_lamb");
  // A judged run has a cost, so the check below that a cost is absent can fail.
  REQUIRE(advise(run, catalog).baseline_cost_usd.has_value());
  run.erase("freeze_step");
  not_judged(run, "0");
  run["freeze_step"] = "95.1%";
  not_judged(run, "4.9");
  run["freeze_step"] = "94.9%";
  CHECK(advise(run, catalog).judged());
  // Silent steps of 0/1 Adam send nothing; they count as compressed.
  run = question("aws-p3dn", "32", "zero_one_adam");
  CHECK(advise(run, catalog).answer.compressed_share > 0.8);
}

TEST_CASE(
    "advice: a published recipe without --steps is judged over the run it was published for") {
  Catalog catalog;
  const TemporaryFolder folder;
  const WhatIf asked{{"model", "bert-large"},
                     {"cluster", "commodity-10gbe"},
                     {"nodes", "16"},
                     {"config", folder.file("lamb.json", R"({ "train_batch_size": 65536,
    "train_micro_batch_size_per_gpu": 64, "gradient_clipping": 1.0, "fp16": { "enabled": true },
    "optimizer": { "type": "OneBitLamb", "params": { "lr": 11e-3, "freeze_step": 1000,
      "max_coeff": 0.3, "min_coeff": 0.01, "comm_backend_name": "nccl" } } })")}};
  const Advice advice = advise(asked, catalog);
  CHECK(advice.judged());
  CHECK_THAT(advice_text(advice), Contains("cost: no price is known; --set cluster.usd_per_gpu"));
  CHECK_THAT(advice_text(advice), Catch::StartsWith("Pays: onebit_lamb makes the run ") &&
                                      Contains("assumed: 5993 optimizer steps"));
  // So are all exchanges, over the same run.
  const auto row = std::ranges::find(advice.exchanges, "all_reduce", &ExchangeAdvice::name);
  REQUIRE(row != advice.exchanges.end());
  CHECK(row->run_s == advice.baseline_time_s);
  CHECK(std::ranges::is_sorted(advice.exchanges, {}, &ExchangeAdvice::step_us));
  WhatIf said = asked;
  said["steps"] = "5993";
  CHECK(advise(said, catalog).answer.speedup().value == advice.answer.speedup().value);
}

TEST_CASE(
    "advice: the ratios of a run with ZeRO are relative to it, and a plain run without ZeRO is "
    "shown") {
  Catalog catalog;
  WhatIf asked = question("commodity-100gbe", "32", "adam");
  asked["grad_accum"] = "8";
  asked["zero_stage"] = "1";
  const Advice advice = advise(asked, catalog);
  INFO(advice_text(advice));
  CHECK(advice.baseline == "adam with ZeRO stage 1");
  const auto row = std::ranges::find(advice.exchanges, "onebit_adam", &ExchangeAdvice::name);
  REQUIRE(row != advice.exchanges.end());
  CHECK(row->speedup.value == Approx(advice.answer.speedup().value).epsilon(1e-12));
  CHECK(row->run_s == advice.answer.backends.front().time_s);
  REQUIRE(row->pays.has_value());
  CHECK(row->pays->at.has_value() == advice.answer.break_even->at.has_value());
  REQUIRE(advice.without_zero.has_value());
  WhatIf plain = asked;
  plain["zero_stage"] = "0";
  CollectiveCosts costs;
  const Forecast of_plain = forecast(resolve(plain, catalog).training, costs);
  CHECK(advice.without_zero->time_s == of_plain.run.time_s);
  CHECK(advice.without_zero->speedup.value ==
        Approx(advice.baseline_time_s / of_plain.run.time_s).epsilon(1e-12));
  CHECK_THAT(advice_text(advice),
             Contains("adam without ZeRO is ") &&
                 Contains("the fastest of the three that fits is onebit_adam without ZeRO."));
  CHECK_THAT(explain_advice(advice, "exchanges"),
             Contains("speed-ups are against adam with ZeRO stage 1 with all_reduce"));

  // Rows of the CSV are relative to the run with ZeRO too.
  const csv::Table rows = csv::parse(advice_csv(advice, catalog), "advice");
  REQUIRE(rows.rows.size() == advice.answer.backends.size() + advice.fused->backends.size());
  for (std::size_t i = 0; i < advice.answer.backends.size(); ++i) {
    CHECK(rows.text(i, "baseline_optimizer") == advice.baseline);
    CHECK(rows.number(i, "speedup_vs_baseline") ==
          Approx(advice.answer.backends[i].speedup.value).epsilon(1e-12));
  }

  // The warning that compression loses appears only if the answer is slower than the run with ZeRO.
  asked["cluster"] = "dgx-a100-80g";
  asked["kernels"] = "deepspeed";
  const Advice fast = advise(asked, catalog);
  INFO(advice_text(fast));
  const bool warned = std::ranges::any_of(
      fast.findings, [](const Finding& finding) { return finding.code == "compression-loses"; });
  CHECK(warned == (fast.answer.speedup().value < 1));
}

TEST_CASE("advice: both runs are in the precision of the 1-bit optimizer") {
  const WhatIf asked{{"model", "llama2-7b"}, {"cluster", "hgx-h100-ndr"}, {"nodes", "2"},
                     {"optimizer", "adamw"}, {"micro_batch", "1"},        {"grad_accum", "8"},
                     {"steps", "10000"}};
  Catalog catalog;
  const auto compared = [&](const WhatIf& what_if) {
    const Advice advice = advise(what_if, catalog);
    CHECK(advice.answer.scenario.training.recipe.precision.weights == DataType::fp16);
    return std::pair(advice.baseline_time_s,
                     std::ranges::count(advice.findings, "compared-in-fp16", &Finding::code));
  };
  const auto [unstated_s, unstated_notes] = compared(asked);
  const auto [stated_s, stated_notes] = compared([&] {
    WhatIf stated = asked;
    stated["precision"] = "fp16";
    return stated;
  }());
  CHECK(unstated_s == stated_s);
  CHECK(unstated_notes == 1);
  CHECK(stated_notes == 0);
}

TEST_CASE("advice: if streams limit the plain run, a faster NIC is without effect") {
  Catalog catalog;
  const Advice advice = advise(question("commodity-100gbe", "64", "lamb"), catalog);
  REQUIRE(advice.answer.break_even.has_value());
  REQUIRE(advice.answer.break_even->streams.has_value());
  const Bandwidth streams = *advice.answer.break_even->streams;
  const auto run_s = [&](Bandwidth nic) {
    CollectiveCosts costs;
    const WhatIf asked = at_bandwidth(question("commodity-100gbe", "64", "lamb"), nic);
    return forecast(resolve(asked, catalog).training, costs).run.time_s;
  };
  CHECK(run_s(streams * 1.001) == run_s(streams * 4));
  CHECK(run_s(streams * 0.99) > run_s(streams * 4));
}

TEST_CASE("advice: streams are named if algorithms with several peers reach their limit later") {
  Catalog catalog;
  WhatIf asked = question("commodity-10gbe", "16", "onebit_lamb");
  asked["micro_batch"] = "4";
  asked["grad_accum"] = "1";
  const Advice advice = advise(asked, catalog);
  REQUIRE(advice.answer.break_even.has_value());
  CHECK(advice.answer.break_even->streams.has_value());
  CHECK_THAT(advice_text(advice), !Contains("another part of the node"));
}

TEST_CASE("advice: no statement about a run is made if it does not fit") {
  Catalog catalog;
  WhatIf asked = question("commodity-10gbe", "32", "onebit_adam");
  asked["model"] = "gpt2-xl";
  asked["micro_batch"] = "4";
  const Advice advice = advise(asked, catalog);
  const std::string text = advice_text(advice);
  INFO(text);
  CHECK_THAT(text, Catch::StartsWith("Does not fit with a micro batch of ") &&
                       Contains(": onebit_adam needs ") && !Contains("It pays") &&
                       !Contains("does not pay above") && !Contains("Against a step"));
  CHECK_FALSE(advice.answer.break_even.has_value());
  CHECK_THAT(advice_json(advice), Contains("\"break_even_nic_bandwidth_Gbps\": null"));
}

TEST_CASE("advice: both implementations of the kernels are judged, unless one is chosen") {
  Catalog catalog;
  const WhatIf asked = question("paper-eth40-v100", "16", "onebit_lamb");
  const Advice both = advise(asked, catalog);
  REQUIRE(both.fused.has_value());
  REQUIRE(both.fused->backends.size() == 2);  // nccl and mpi from host memory
  for (const char* kernels : {"deepspeed", "fused"}) {
    WhatIf chosen = asked;
    chosen["kernels"] = kernels;
    const Advice one = advise(chosen, catalog);
    CHECK_FALSE(one.fused.has_value());
    const Answer& same = std::string(kernels) == "fused" ? *both.fused : both.answer;
    CHECK(one.answer.backends.front().time_s == same.backends.front().time_s);
    CHECK_THAT(advice_json(one), Contains("\"fused_kernels\": null"));
  }
  CHECK(both.fused->backends.front().time_s < both.answer.backends.front().time_s);
  CHECK_THAT(advice_text(both), Contains("DeepSpeed's unfused kernels") &&
                                    Contains("With the fused kernels that ship here"));
}

TEST_CASE("advice: a backend that a layout rules out is named, and the others are compared") {
  Catalog catalog;
  WhatIf asked = question("commodity-25gbe", "32", "onebit_adam");
  asked["model"] = "gpt2-xl";
  asked["pp"] = "4";
  const Advice advice = advise(asked, catalog);
  CHECK(advice.answer.backends.size() == 1);
  CHECK_THAT(advice_text(advice), Contains("not here: mpi (host-staged)"));
  CHECK_THAT(explain_advice(advice, "backends"),
             Contains(": not here: ") && Contains("exchanges over all ranks"));
  asked["pp"] = "7";
  CHECK_THROWS_AS(advise(asked, catalog), Error);
}

TEST_CASE(
    "advice: the changes of the parts add up to that of the step, and the deciding part is "
    "named") {
  Catalog catalog;
  for (const char* cluster : {"commodity-10gbe", "hgx-h100-ndr"}) {
    for (const char* type : {"onebit_lamb", "onebit_adam"}) {
      const Advice advice = advise(question(cluster, "16", type), catalog);
      for (const Answer* answer : {&advice.answer, &*advice.fused}) {
        INFO(cluster << " " << type << "\n" << advice_text(advice));
        const double step_us =
            (answer->forecast().run.time_s - advice.baseline_time_s) / 6000 * 1e6;
        const PartTimes& change = answer->change;
        CHECK(change[PartGroup::wire] + change[PartGroup::compression] +
                  change[PartGroup::optimizer] ==
              Approx(step_us).margin(1e-6 * advice.baseline_time_s / 6000 * 1e6));
        CHECK(change[PartGroup::compression] > 0);
      }
      CHECK(advice.fused->change[PartGroup::compression] <
            advice.answer.change[PartGroup::compression]);
    }
  }
  CHECK_THAT(advice_text(advise(question("hgx-h100-ndr", "16", "onebit_lamb"), catalog)),
             Contains(" ms more together, most of it compression.") ||
                 Contains(" ms more together, most of it optimizer."));
  // A shorter step is attributed to the part that gains.
  CHECK_THAT(advice_text(advise(question("commodity-10gbe", "16", "onebit_lamb"), catalog)),
             Contains(" less, compression ") && Contains(" ms less together."));
}

// The gain of another change does not count as a gain of compression.
TEST_CASE("advice: if compression makes no difference, no sentence says that it pays") {
  Catalog catalog;
  WhatIf adapters = question("hgx-h100-ndr", "32", "adamw");
  adapters["model"] = "llama3-8b";
  adapters["micro_batch"] = "1";
  adapters["zero_stage"] = "3";
  adapters["precision"] = "bf16";
  adapters["lora_rank"] = "16";
  adapters["freeze_step"] = "1200";
  const Advice advice = advise(adapters, catalog);
  REQUIRE(advice.fused->verdict() == Verdict::hardly);
  REQUIRE(advice.fused->plain_gains());
  const std::string text = explain_advice(advice, "backends");
  INFO(text);
  CHECK_THAT(text, Contains(" makes no difference: the run then ") &&
                       Contains("\nBoth changes together, against a step of"));
  CHECK_THAT(text, Contains("It is no slower at any NIC bandwidth, and makes no difference") &&
                       !Contains("It pays at any"));
}

TEST_CASE("advice: findings on the run itself are included") {
  Catalog catalog;
  WhatIf shallow = question("commodity-10gbe", "256", "onebit_adam");
  shallow["cluster.nic.port_queue"] = "64KiB";
  CHECK_THAT(advice_text(advise(shallow, catalog)), Contains("[incast]"));
  CHECK_THAT(advice_json(advise(shallow, catalog)), Contains("\"incast\""));
  CHECK_THAT(explain_advice(advise(shallow, catalog), "backends"),
             Contains("communication not calibrated"));
  CHECK_THAT(advice_json(advise(shallow, catalog)), Contains("step_time_high_us"));
}

TEST_CASE("advice list: a row with an unusual share of warm-up has no verdict") {
  Catalog catalog;
  WhatIf asked = question("commodity-10gbe", "32", "onebit_lamb");
  asked.erase("freeze_step");
  const AdviceList list = advise_all(asked, {{"freeze_step", {"0", "1000", "5000"}}}, catalog);
  const std::string text = advice_list_text(list);
  CHECK_THAT(text, Contains("\n0           no warm-up ") && Contains("\n1000        pays ") &&
                       Contains("\n5000        long warm-up "));
}

TEST_CASE("advice: judges the exchange of the 1-bit optimizer and no other exchange") {
  Catalog catalog;
  WhatIf asked = question("commodity-10gbe", "32", "adam");
  asked["exchange"] = "int8";
  CHECK_THROWS_WITH(advise(asked, catalog),
                    Contains("--exchange: advise compares onebit_adam with adam and lists other "
                             "exchanges in its table (allowed: onebit, or lambcast simulate)"));
  asked["exchange"] = "all_reduce";
  CHECK_NOTHROW(advise(asked, catalog));
}

TEST_CASE("advice: one GPU has nothing to compress") {
  Catalog catalog;
  const Advice advice = advise(question("dgx2h-v100", "1", "onebit_lamb"), catalog);
  CHECK(advice.exposed_share == 0);
  CHECK(advice.most_speedup == 1);
  CHECK_FALSE(advice.answer.break_even.has_value());
  CHECK_THAT(advice_text(advice), Contains("Does not pay: onebit_lamb takes"));
  CHECK_THAT(advice_json(advice), Contains("\"break_even_nic_bandwidth_Gbps\": null"));
}

}  // namespace
}  // namespace lambcast
