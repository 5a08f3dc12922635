#include "experiments/advise/exchange_advice.h"

#include <fmt/format.h>

#include <set>
#include <sstream>

#include "experiments/advise/advice.h"
#include "experiments/advise/advice_output.h"
#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

using Catch::Contains;

WhatIf exchanges_asked(const WhatIf& more = {}) {
  WhatIf what_if{{"model", "bert-large"}, {"cluster", "commodity-10gbe"}, {"gpus", "64"},
                 {"optimizer", "adam"},   {"micro_batch", "16"},          {"grad_accum", "4"},
                 {"steps", "10000"}};
  for (const auto& [key, value] : more) what_if.insert_or_assign(key, value);
  return what_if;
}

const ExchangeAdvice& named(const std::vector<ExchangeAdvice>& all, const std::string& name) {
  const auto found = std::ranges::find(all, name, &ExchangeAdvice::name);
  REQUIRE(found != all.end());
  return *found;
}

std::vector<ExchangeAdvice> advised(const WhatIf& asked, const std::vector<ExchangeAdvice>& onebit,
                                    Catalog& catalog) {
  CollectiveCosts costs;
  return advise_exchanges(asked, onebit, catalog, costs);
}

TEST_CASE("exchange advice: fp16 is listed only for gradients in fp32") {
  Catalog catalog;
  const auto names_halves = [&](const char* precision) {
    const auto all = advised(exchanges_asked({{"precision", precision}}), {}, catalog);
    return std::ranges::any_of(all, [](const ExchangeAdvice& one) { return one.name == "fp16"; });
  };
  CHECK(names_halves("fp32"));
  CHECK_FALSE(names_halves("fp16"));
}

TEST_CASE("exchange advice: all exchanges on one cluster, fastest first") {
  Catalog catalog;
  WhatIf onebit = exchanges_asked({{"optimizer", "onebit_adam"}, {"freeze_step", "15%"}});
  CollectiveCosts costs;
  const auto all = advised(
      exchanges_asked(),
      {exchange_advice_of("onebit_adam", forecast(resolve(onebit, catalog).training, costs))},
      catalog);
  const int site = resolve(exchanges_asked(), catalog).training.gpus_per_node;
  CHECK(all.size() == usual_exchanges(false, site).size() + 1);
  std::set<std::string> names;
  for (std::size_t i = 0; i < all.size(); ++i) {
    INFO(all[i].name);
    CHECK(names.insert(all[i].name).second);
    CHECK(all[i].refused.empty());
    CHECK(all[i].fits);
    if (i > 0) CHECK(all[i - 1].run_s <= all[i].run_s);
  }
  const ExchangeAdvice& plain = named(all, "all_reduce");
  CHECK(plain.speedup.value == 1);
  CHECK(plain.kernels_us == 0);
  CHECK_FALSE(plain.pays.has_value());
  for (const char* less :
       {"onebit", "fp8", "fp8:owed", "int8", "int4", "powersgd:4", "randomk:1%", "local:16"})
    CHECK(named(all, less).wire_bytes < plain.wire_bytes);
  CHECK(named(all, "powersgd:4").peak > plain.peak);
}

TEST_CASE("exchange advice: the forms of other libraries are listed next to DeepSpeed's") {
  Catalog catalog;
  const auto all = advised(exchanges_asked(), {}, catalog);
  for (const std::string codec : {"onebit", "int8"}) {
    const ExchangeAdvice& form = named(all, codec + " / two-level / overlapped");
    CHECK(form.refused.empty());
    if (codec == "int8") CHECK(form.step_us < named(all, codec).step_us);  // on 10 GbE
  }
  // Each GPU sends the signs of one quarter of the gradients over the NIC, since its node has 4
  // GPUs.
  CHECK(named(all, "onebit / sharded").step_us < named(all, "onebit").step_us);
  const auto is_form = [](const ExchangeAdvice& of) {
    return of.name.find('/') != std::string::npos;
  };
  const auto in_hooks = advised(
      exchanges_asked({{"framework", "pytorch"}, {"cluster", "dgx-a100-80g"}}), {}, catalog);
  CHECK(std::ranges::none_of(in_hooks, is_form));
  const auto alone =
      advised(exchanges_asked({{"gpus_per_node", "1"}, {"gpus", "16"}}), {}, catalog);
  CHECK(std::ranges::none_of(
      alone, [](const ExchangeAdvice& of) { return of.name == "onebit / sharded"; }));
}

TEST_CASE("exchange advice: with sharded weights, the remaining exchanges are forecast too") {
  Catalog catalog;
  const auto all =
      advised(exchanges_asked({{"zero_stage", "3"}, {"cluster", "commodity-100gbe"}}), {}, catalog);
  CHECK(named(all, "all_reduce").kernels_us == 0);
  for (const char* left : {"qgz", "loco"}) {
    // the kernels run inside the passes, block by block
    CHECK_FALSE(named(all, left).kernels_us.has_value());
    CHECK(named(all, left).refused.empty());
    CHECK(named(all, left).wire_bytes < named(all, "all_reduce").wire_bytes);
  }
  CHECK_FALSE(named(all, "int8").refused.empty());
}

TEST_CASE(
    "exchange advice: at its break-even bandwidth an exchange takes as long as the "
    "all-reduce") {
  Catalog catalog;
  const WhatIf on_nics{{"cluster", "dgx-a100-80g"}};
  const auto all = advised(exchanges_asked(on_nics), {}, catalog);
  int crossings = 0;
  for (const ExchangeAdvice& of : all) {
    if (!of.pays || !of.pays->at) continue;
    INFO(of.name);
    WhatIf at = exchanges_asked(on_nics);
    at["exchange"] = of.name;
    at["cluster.nic.bandwidth"] = fmt::format("{} bit/s", of.pays->at->value() * 8);
    CollectiveCosts costs;
    const Scenario scenario = resolve(at, catalog);
    CHECK(forecast(scenario.training, costs).run.speedup_vs_baseline == Approx(1).epsilon(3e-3));
    ++crossings;
  }
  CHECK(crossings > 0);
}

// NCCL's TCP streams limit the all-reduce from 10.3 Gbit/s on. Above that bandwidth only the
// exchange becomes faster, so fp8 would seem to begin to pay there.
TEST_CASE("exchange advice: no break-even lies where a limit slows the all-reduce") {
  Catalog catalog;
  CollectiveCosts costs;
  const WhatIf asked = exchanges_asked();
  const Bandwidth fastest = fastest_of_use(asked, catalog, costs);
  CHECK(fastest.value() * 8e-9 == Approx(10.32).epsilon(0.01));
  for (const ExchangeAdvice& of : advised(asked, {}, catalog))
    if (of.pays && of.pays->at) CHECK(*of.pays->at <= fastest);
}

TEST_CASE("exchange advice: figures have their intervals, and rows fit a terminal") {
  Catalog catalog;
  for (const WhatIf& asked : {exchanges_asked(), exchanges_asked({{"zero_stage", "1"}}),
                              exchanges_asked({{"cluster", "hgx-h100-ndr"}})}) {
    const Advice advice = advise(asked, catalog);
    for (const ExchangeAdvice& of : advice.exchanges) {
      if (!of.refused.empty()) continue;
      INFO(of.name);
      CHECK(of.speedup.low <= of.speedup.value);
      CHECK(of.speedup.value <= of.speedup.high);
      CHECK(of.run_low_s <= of.run_s);
      CHECK(of.run_s <= of.run_high_s);
    }
    std::istringstream lines(advice_text(advice) + explain_advice(advice, "exchanges"));
    int rows = 0;
    for (std::string line; std::getline(lines, line);) {
      if (line.find(" to ") == std::string::npos || line.find("x ") == std::string::npos ||
          line.find(" GB ") == std::string::npos || line.ends_with('.'))
        continue;
      INFO(line);
      CHECK(line.size() <= 80);
      ++rows;
    }
    CHECK(rows > 10);
  }
}

TEST_CASE("exchange advice: what ZeRO does not leave room for is refused, last") {
  Catalog catalog;
  const auto all = advised(exchanges_asked({{"zero_stage", "2"}}), {}, catalog);
  CHECK(named(all, "fp8").refused.empty());
  CHECK_THAT(named(all, "powersgd:4").refused, Contains("keeps the error of whole gradients"));
  CHECK_THAT(named(all, "local:16").refused, Contains("none can share states"));
  CHECK_FALSE(all.back().refused.empty());
}

TEST_CASE("exchange: an exchange without effect is reported") {
  Catalog catalog;
  const auto said = [&](const char* exchange, const char* steps, const char* code) {
    WhatIf asked = exchanges_asked({{"steps", steps}});
    asked["exchange"] = exchange;
    const std::vector<Finding> findings = resolve(asked, catalog).findings;
    return std::ranges::count(findings, code, &Finding::code);
  };
  CHECK(said("local:16", "15", "exchange-never") == 1);
  CHECK(said("local:16", "16", "exchange-never") == 0);
  CHECK(said("powersgd:1024", "100", "exchange-whole") == 1);
  CHECK(said("powersgd:4", "100", "exchange-whole") == 0);
}

TEST_CASE(
    "exchange: a finding warns that inexact gradients may need more steps, if gradients are "
    "sent") {
  const auto said = [](const char* gpus) {
    const auto findings = resolved(exchanges_asked({{"exchange", "fp8"}, {"gpus", gpus}})).findings;
    return std::ranges::count(findings, "exchange-convergence", &Finding::code);
  };
  CHECK(said("2") == 1);
  CHECK(said("1") == 0);
}

TEST_CASE("exchange: combined with ZeRO and layouts if possible, else refused in one line") {
  const auto refused = [](const char* exchange, const WhatIf& more) {
    WhatIf asked = exchanges_asked(more);
    asked["exchange"] = exchange;
    asked["cluster"] = "dgx-a100-80g";
    const std::string why = refusal(asked);
    CHECK(why.find('\n') == std::string::npos);
    return why;
  };
  const WhatIf zero1{{"zero_stage", "1"}}, zero2{{"zero_stage", "2"}}, zero3{{"zero_stage", "3"}};
  const WhatIf divided{{"tp", "2"}, {"pp", "2"}, {"framework", "megatron"}};
  for (const char* any : {"onebit", "fp8", "int8", "int4", "powersgd:4", "topk:1%", "randomk:1%"})
    for (const WhatIf& how : {WhatIf{}, zero1, divided}) CHECK(refused(any, how) == "");
  for (const char* scaled : {"fp8", "fp8:e5m2", "int4", "qgz", "qgz:int8", "loco", "loco:int8"})
    CHECK(refused(scaled, zero2) == "");
  for (const char* levels : {"qgz", "qgz:int8", "loco", "loco:int8"}) {
    CHECK(refused(levels, zero3) == "");
    CHECK_THAT(refused(levels, {}),
               Contains("needs ZeRO: each rank keeps only the sums of its own share"));
  }
  for (const char* local : {"local:8", "localsgd:8"}) {
    CHECK(refused(local, divided) == "");
    CHECK_THAT(refused(local, zero1), Contains("none can share states (allowed: all_reduce"));
  }
  for (const char* graph : {"neighbours:ring", "neighbours:exponential"}) {
    CHECK(refused(graph, {}) == "");
    CHECK(refused(graph, divided) == "");
    CHECK_THAT(refused(graph, zero1), Contains("none can share states (allowed: all_reduce"));
  }
  CHECK_THAT(refused("neighbours:exponential", {{"gpus", "24"}}),
             Contains("a power of two ranks, not 24 (allowed: neighbours:ring)"));
  CHECK_THAT(refused("topk:1%", zero2),
             Contains("--exchange: it keeps the error of whole gradients"));
  CHECK_THAT(refused("topk:1%", zero2),
             Contains("(allowed: all_reduce, fp8, int8, int4, qgz, loco, or with --zero-stage 0)"));
  CHECK_THAT(refused("fp8", zero3),
             Contains("for which it has no form (allowed: all_reduce, qgz, qgz:int8, loco, "
                      "loco:int8)"));
  CHECK_THAT(refused("qgz", {}),
             Contains("of its own share (allowed: with --zero-stage 1, 2 or 3)"));
  CHECK_THAT(refused("fp8", {{"precision", "bf16"}, {"deepspeed_version", "0.17.5"}}),
             Contains("BF16_Optimizer supports only sums of whole fp32 buffers"));
  CHECK_THAT(refused("fp8", {{"optimizer", "onebit_adam"}}), Contains("has its own exchange"));
  CHECK(refused("onebit", {{"optimizer", "onebit_adam"}, {"freeze_step", "15%"}}) == "");
  CHECK_THAT(refused("fp8", {{"zero_stage", "1"}, {"framework", "megatron"}, {"shard_ranks", "8"}}),
             Contains("which shard_ranks divides"));
}

TEST_CASE(
    "exchanges: quantization that DeepSpeed has only at stage 3 is reported at stages 1 and "
    "2") {
  const auto said = [](const char* exchange, const char* stage, const char* framework) {
    const WhatIf asked{{"model", "bert-large"}, {"cluster", "dgx-a100-80g"}, {"gpus", "16"},
                       {"micro_batch", "8"},    {"grad_accum", "2"},         {"steps", "100"},
                       {"optimizer", "adamw"},  {"exchange", exchange},      {"zero_stage", stage},
                       {"framework", framework}};
    return std::ranges::any_of(resolved(asked).findings, [](const Finding& finding) {
      return finding.code == "exchange-of-stage-3" && finding.severity == Severity::note;
    });
  };
  for (const char* levels : {"qgz", "qgz:int8", "loco", "loco:int8"}) {
    INFO(levels);
    CHECK(said(levels, "1", "deepspeed"));
    CHECK(said(levels, "2", "deepspeed"));
    CHECK_FALSE(said(levels, "3", "deepspeed"));
    CHECK_FALSE(said(levels, "1", "megatron"));
  }
  CHECK_FALSE(said("fp8", "1", "deepspeed"));
}

}  // namespace
}  // namespace lambcast
