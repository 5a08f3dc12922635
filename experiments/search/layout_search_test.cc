#include "experiments/search/layout_search.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "experiments/output/forecast_output.h"
#include "experiments/search/layout_search_output.h"
#include "models/training/price/least_step.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

// A question on gpt2-xl (48 blocks of 25 heads, 1.5 billion parameters) on 16 A100s.
WhatIf layouts_asked(const WhatIf& changes = {}) {
  WhatIf what_if{{"model", "gpt2-xl"},   {"cluster", "dgx-a100-80g"}, {"gpus", "16"},
                 {"global_batch", "64"}, {"framework", "megatron"},   {"optimizer", "adam"},
                 {"precision", "bf16"}};
  for (const auto& [key, value] : changes) what_if.insert_or_assign(key, value);
  return what_if;
}

LayoutSearch searched(const WhatIf& asked, int jobs = 1, bool every_setting = false) {
  SearchOptions options;
  options.jobs = jobs;
  options.every_setting = every_setting;
  return search_layouts(asked, options, std::make_shared<DescriptionTexts>());
}

double simulated_us(const WhatIf& what_if) {
  Catalog catalog;
  CollectiveCosts costs;
  return forecast(resolve(what_if, catalog).training, costs).steps.front().step_time_us;
}

TEST_CASE("layout search: a layout found takes the time that simulate forecasts") {
  const LayoutSearch search = searched(layouts_asked());
  // 25 heads have no divisor in common with 16 GPUs, so only pp divides
  REQUIRE(search.best.size() == 5);
  for (const FoundLayout& found : search.best)
    CHECK(found.step.step_time.us() == Approx(simulated_us(found.what_if)).epsilon(1e-12));
  for (std::size_t i = 1; i < search.best.size(); ++i)
    CHECK(search.best[i - 1].step.step_time <= search.best[i].step.step_time);
}

TEST_CASE("layout search: there is a layout for every framework") {
  for (const std::string& framework : framework_names()) {
    INFO(framework);
    const LayoutSearch search =
        searched(layouts_asked({{"framework", framework}, {"gpus", "8"}, {"model", "bert-large"}}));
    REQUIRE_FALSE(search.best.empty());
    const FoundLayout& found = search.best.front();
    CHECK(found.step.step_time.us() == Approx(simulated_us(found.what_if)).epsilon(1e-12));
  }
}

TEST_CASE("layout search: sizes that no layout has are refused, with the rule") {
  CHECK_THROWS_WITH(
      searched(layouts_asked({{"framework", "torchtitan"}, {"gpus", "8"}, {"tp", "3"}})),
      "--tp: no layout of 8 GPUs has tp 3 (allowed: tp x cp x pp x dp that make the "
      "GPUs, and ep a divisor of the ranks that have the same layers)");
  CHECK_THROWS_WITH(searched(layouts_asked({{"tp", "3"}})),
                    Contains("no layout of 16 GPUs has tp 3"));
  CHECK_THROWS_WITH(searched(layouts_asked({{"pp", "5"}, {"cp", "2"}})),
                    Contains("no layout of 16 GPUs has cp 2, pp 5"));
}

TEST_CASE("layout search: no candidate that runs is faster than the layouts found") {
  const WhatIf asked = layouts_asked({{"recompute", "none"}, {"interleave", "1"}, {"gpus", "8"}});
  const LayoutSearch search = searched(asked, 1, true);
  REQUIRE(search.best.size() == 10);
  Catalog catalog;
  std::vector<double> steps;
  std::size_t refused = 0;
  for (const LayoutCandidate& candidate : layout_candidates(search.space)) {
    try {
      const TrainingPlan training = resolve(with_layout(search.space, candidate), catalog).training;
      CollectiveCosts costs;
      const Forecast of = forecast(training, costs);
      if (of.memory.fits)
        steps.push_back(of.steps.front().step_time_us);
      else
        ++refused;
    } catch (const Error&) {
      ++refused;
    }
  }
  CHECK(search.forecast == steps.size());
  CHECK(search.candidates == steps.size() + refused);
  std::sort(steps.begin(), steps.end());
  for (std::size_t i = 0; i < search.best.size(); ++i)
    CHECK(search.best[i].step.step_time.us() == Approx(steps[i]).epsilon(1e-12));
}

// A candidate is left out if its lower bound exceeds the slowest layout shown. A search that leaves
// nothing out must find the same layouts.
TEST_CASE("layout search: layouts that are left out are slower than those shown") {
  const std::vector<WhatIf> questions{
      layouts_asked(),
      layouts_asked({{"framework", "torchtitan"}, {"model", "llama3-8b"}}),
      layouts_asked({{"pipeline_schedule", "zb1p"}, {"gpus", "8"}}),
      layouts_asked({{"model.layers", "46"}}),
      layouts_asked({{"model", "mixtral-8x7b"}, {"gpus", "16"}, {"seq_len", "4096"}}),
      layouts_asked({{"network", "flow"},
                     {"cluster.fabric.kind", "fat-tree"},
                     {"cluster.fabric.nodes_per_leaf", "2"},
                     {"cluster.fabric.oversubscription", "4"}})};
  for (const WhatIf& asked : questions) {
    SearchOptions options;
    options.best = 4;
    options.compression = false;
    const auto texts = std::make_shared<DescriptionTexts>();
    const LayoutSearch few = search_layouts(asked, options, texts);
    options.best = 100'000;
    const LayoutSearch all = search_layouts(asked, options, texts);
    CHECK(few.forecast == all.forecast);
    REQUIRE(few.best.size() == std::min<std::size_t>(4, all.best.size()));
    for (std::size_t i = 0; i < few.best.size(); ++i)
      CHECK(few.best[i].what_if == all.best[i].what_if);
    for (const FoundLayout& found : all.best) {
      Catalog catalog;
      CollectiveCosts costs;
      const TrainingPlan training = resolve(found.what_if, catalog).training;
      const Duration least =
          least_step_time(training, {StepKind::uniform, training.seq_len, 1}, costs);
      CHECK(least > found.step.step_time.scaled(0.1));
      CHECK(least <= found.step.step_time);
    }
  }
}

// Splits of 46 layers over 4 stages: `count_ends` (48 with embedding and head, 12 per stage),
// `spread` (12, 12, 11, 11) and `fill` (12, 12, 12, 10).
TEST_CASE("layout search: layers that the stages do not divide are split otherwise") {
  const WhatIf asked = layouts_asked({{"model.layers", "46"}, {"pp", "4"}});
  const LayoutSearch search = searched(asked);
  REQUIRE_FALSE(search.best.empty());
  std::set<std::string> splits;
  for (const LayoutCandidate& candidate : layout_candidates(search.space))
    if (candidate.split) splits.insert(std::string(name_of(*candidate.split)));
  CHECK(splits == std::set<std::string>{"count_ends", "fill", "spread"});
  CHECK(splits.contains(search.best.front().split));
  CHECK_THAT(layout_search_table(search), Contains(search.best.front().split));
  WhatIf even = asked;
  even["split"] = "even";
  CHECK(searched(even).best.empty());
}

TEST_CASE("layout search: further splits are never worse than the framework's own") {
  for (const char* framework : {"megatron", "torchtitan", "deepspeed"}) {
    INFO(framework);
    WhatIf own = layouts_asked({{"framework", framework}, {"pp", "8"}});
    const LayoutSearch search = searched(own);
    own["split"] = name_of(search.space.base.parallelism->framework.split);
    REQUIRE_FALSE(search.best.empty());
    CHECK(search.best.front().step.step_time <= searched(own).best.front().step.step_time);
  }
}

TEST_CASE("layout search: the answer does not depend on the threads") {
  const std::string one = layout_search_json(searched(layouts_asked(), 1));
  CHECK(one == layout_search_json(searched(layouts_asked(), 3)));
  // 0 threads: computed on the calling thread
  CHECK(one == layout_search_json(searched(layouts_asked(), 0)));
  CHECK_THAT(one, Contains("\"layouts\": ["));
}

TEST_CASE("layout search: every candidate is counted once") {
  const LayoutSearch search = searched(layouts_asked());
  std::size_t refused = 0;
  for (const RefusedLayouts& of : search.refused) {
    CHECK(of.count > 0);
    CHECK_FALSE(of.example.empty());
    refused += of.count;
  }
  CHECK(search.candidates == search.forecast + refused);
  // 25 heads are divisible by 5, but 16 is not.
  const auto heads = std::find_if(search.refused.begin(), search.refused.end(),
                                  [](const auto& of) { return of.reason == "layout-heads"; });
  REQUIRE(heads != search.refused.end());
  CHECK_THAT(heads->example, Contains("25 heads are not divisible by tp 2"));
}

TEST_CASE(
    "layout search: a division of the model is shown once, unless every setting is "
    "requested") {
  const LayoutSearch search = searched(layouts_asked());
  for (std::size_t i = 0; i < search.best.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      CHECK_FALSE(search.best[i].layout.divides_as(search.best[k].layout));
  const LayoutSearch all = searched(layouts_asked(), 1, true);
  CHECK(all.best.front().step.step_time == search.best.front().step.step_time);
  CHECK(all.best.back().step.step_time <= search.best.back().step.step_time);
}

TEST_CASE("layout search: a flag fixes its key") {
  for (const FoundLayout& found :
       searched(layouts_asked({{"pp", "4"}, {"zero_stage", "1"}, {"recompute", "full"}})).best) {
    CHECK(found.layout.pp == 4);
    CHECK(found.layout.zero_stage == 1);
    CHECK(found.layout.recompute == "full");
  }
}

TEST_CASE("layout search: a given dp is the number of replicas that tp, cp and pp leave") {
  const LayoutSearch search = searched(layouts_asked({{"dp", "4"}}));
  REQUIRE_FALSE(search.best.empty());
  for (const LayoutCandidate& candidate : layout_candidates(search.space))
    CHECK(candidate.tp * candidate.cp * candidate.pp == 4);
  for (const FoundLayout& found : search.best) {
    CHECK(found.dp == 4);
    CHECK(found.step.step_time.us() == Approx(simulated_us(found.what_if)).epsilon(1e-12));
  }
  CHECK_THROWS_WITH(searched(layouts_asked({{"dp", "5"}})),
                    Contains("--dp: no layout of 16 GPUs has"));
  WhatIf alone = layouts_asked({{"dp", "4"}});
  alone.erase("gpus");
  CHECK_THROWS_WITH(searched(alone), Contains("--gpus: is missing"));
}

TEST_CASE(
    "layout search: one replica has nothing to compress, and is not the best layout for 1-bit "
    "Adam") {
  const WhatIf asked = layouts_asked({{"precision", "fp16"}, {"framework", "deepspeed"}});
  const LayoutSearch search = searched(asked);
  REQUIRE(search.best_compressed);
  CHECK(search.best_compressed->dp > 1);
  WhatIf alone = asked;
  alone["dp"] = "1";
  const LayoutSearch one = searched(alone);
  REQUIRE_FALSE(one.best.empty());
  CHECK_FALSE(one.best_compressed);
  CHECK_FALSE(one.best.front().compressed->step_time_us);
  const std::string table = layout_search_table(one);
  CHECK_THAT(table, Contains("It does not run with onebit_adam: one replica."));
  CHECK_THAT(table, Contains("no layout runs with onebit_adam: "));
}

TEST_CASE("layout search: if nothing fits, memory is the reason") {
  const LayoutSearch search =
      searched(layouts_asked({{"model", "gpt3-175b"}, {"gpus", "8"}, {"global_batch", "8"}}));
  CHECK(search.best.empty());
  REQUIRE_FALSE(search.refused.empty());
  CHECK(std::any_of(search.refused.begin(), search.refused.end(),
                    [](const auto& of) { return of.reason == "memory"; }));
  CHECK_THAT(layout_search_table(search), Contains("no layout runs"));
}

TEST_CASE(
    "layout search: layouts that may not fit are marked as in simulate, and do not rank "
    "first") {
  Catalog catalog;
  const LayoutSearch search = searched({{"model", "llama2-70b"},
                                        {"cluster", "hgx-h100-ndr"},
                                        {"gpus", "128"},
                                        {"optimizer", "adamw"},
                                        {"global_batch", "1024"}});
  std::size_t tight = 0;
  for (std::size_t i = 0; i < search.best.size(); ++i) {
    const FoundLayout& found = search.best[i];
    tight += found.tight ? 1 : 0;
    CollectiveCosts costs;
    const TrainingPlan training = resolve(found.what_if, catalog).training;
    const auto findings = judge(training, forecast(training, costs));
    CHECK(found.tight ==
          std::ranges::any_of(findings, [](const auto& f) { return f.code == "memory-tight"; }));
    if (i > 0 && search.best[i - 1].tight && !found.tight)
      CHECK(ratio_of(found.time, search.best[i - 1].time).low > 1);
  }
  REQUIRE(tight > 0);  // pp 16 takes 85.4 of 85.9 GB
  CHECK_THAT(layout_search_table(search), Contains(" GB!"));
  CHECK_THAT(layout_search_json(search), Contains("\"memory_tight\": true"));
}

TEST_CASE("layout search: shares of a step add up to it") {
  for (const FoundLayout& found : searched(layouts_asked()).best) {
    const StepShares& shares = found.shares;
    CHECK(shares.compute + shares.layers + shares.gradients + shares.bubble + shares.compression +
              shares.optimizer ==
          Approx(1).epsilon(0.02));
    CHECK(found.utilization > 0.1);
    CHECK(found.utilization < 1);
  }
}

TEST_CASE("layout search: MFU equals that of simulate, with fp8 too") {
  for (const char* precision : {"bf16", "fp8"}) {
    INFO(precision);
    const LayoutSearch search = searched(
        layouts_asked({{"cluster", "hgx-h100-ndr"}, {"gpus", "8"}, {"precision", precision}}));
    REQUIRE_FALSE(search.best.empty());
    Catalog catalog;
    CollectiveCosts costs;
    const TrainingPlan training = resolve(search.best.front().what_if, catalog).training;
    const LanguageRates rates = language_rates(training, forecast(training, costs));
    CHECK(search.best.front().utilization == Approx(rates.mfu.value()).epsilon(1e-9));
  }
}

TEST_CASE("layout search: on a slow network compression helps many replicas most") {
  const WhatIf asked = layouts_asked({{"cluster", "commodity-10gbe"},
                                      {"device", "a100-80g"},
                                      {"framework", "deepspeed"},
                                      {"zero_stage", "0"},
                                      {"precision", "fp16"},
                                      {"gpus", "32"},
                                      {"global_batch", "512"}});
  const LayoutSearch search = searched(asked);
  REQUIRE_FALSE(search.best.empty());
  REQUIRE(search.best_compressed);
  const FoundLayout& compressed = *search.best_compressed;
  CHECK(compressed.what_if.at("optimizer") == "onebit_adam");
  CHECK(compressed.step.step_time < search.best.front().step.step_time);
  CHECK(compressed.dp >= search.best.front().dp);
  const CompressedLayout& same = *search.best.front().compressed;
  REQUIRE(same.step_time_us);
  WhatIf by_hand = search.best.front().what_if;
  by_hand.insert_or_assign("optimizer", "onebit_adam");
  by_hand.insert_or_assign("freeze_step", "10");
  by_hand.insert_or_assign("steps", "100");
  Catalog catalog;
  CollectiveCosts costs;
  const Forecast run = forecast(resolve(by_hand, catalog).training, costs);
  REQUIRE(run.steps.size() == 2);
  CHECK(*same.step_time_us == Approx(run.steps[1].step_time_us).epsilon(1e-9));
}

TEST_CASE("layout search: shared weights are forecast in int8 too, their gradients in int4") {
  const LayoutSearch search = searched(layouts_asked({{"cluster", "commodity-10gbe"},
                                                      {"device", "a100-80g"},
                                                      {"framework", "deepspeed"},
                                                      {"zero_stage", "3"},
                                                      {"tp", "1"},
                                                      {"pp", "1"},
                                                      {"precision", "fp16"},
                                                      {"gpus", "32"}}));
  REQUIRE_FALSE(search.best.empty());
  REQUIRE(search.best.front().quantized);
  REQUIRE(search.best.front().quantized->step_time_us);
  // On 10 Gbit/s the wire is all: 1 + 1 + 0.5 bytes an element where 2 + 2 + 2 stood.
  CHECK(search.best.front().quantized->speedup.value > 1.8);
  CHECK(search.best.front().quantized->speedup.value < 3);
  const std::string all = explain_layout_search(search, "layouts");
  CHECK_THAT(all, Contains("ZeRO++"));
  // Every figure has its interval, and rows fit a terminal.
  for (const FoundLayout& found : search.best) {
    CHECK(found.step.step_time_low <= found.step.step_time);
    CHECK(found.step.step_time <= found.step.step_time_high);
    for (const auto& of : {found.compressed, found.quantized, found.fp8}) {
      if (!of || !of->step_time_us) continue;
      CHECK(of->speedup.value == Approx(found.step.step_time.us() / *of->step_time_us));
      CHECK(of->speedup.low <= of->speedup.value);
      CHECK(of->speedup.value <= of->speedup.high);
    }
  }
  std::istringstream lines(layout_search_table(search) + all);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(" 1 ") || line.starts_with(" # ")) CHECK(line.size() <= 80);
}

// Gradients take 8 instead of 16 bits, on a network that limits the step.
TEST_CASE("layout search: gradients are forecast in fp8 too, unless another exchange is given") {
  const WhatIf asked = layouts_asked({{"cluster", "commodity-10gbe"}, {"tp", "1"}, {"pp", "1"}});
  const FoundLayout best = searched(asked).best.at(0);
  REQUIRE(best.dp > 1);
  REQUIRE(best.fp8);
  INFO(best.fp8->refused);
  REQUIRE(best.fp8->step_time_us);
  CHECK(best.fp8->speedup.value > 1);
  CHECK(best.fp8->speedup.value < 4);
  WhatIf alone = best.what_if;
  alone["exchange"] = "fp8";
  CHECK(simulated_us(alone) == Approx(*best.fp8->step_time_us));
  WhatIf other = asked;
  other["exchange"] = "int8";
  CHECK_FALSE(searched(other).best.at(0).fp8);
}

TEST_CASE("layout search: keys that need ZeRO are searched if ranks share states") {
  const LayoutSearch search =
      searched(layouts_asked({{"framework", "deepspeed"}, {"offload_optimizer", "cpu"}}));
  REQUIRE_FALSE(search.best.empty());
  for (const FoundLayout& found : search.best) CHECK(found.layout.zero_stage >= 1);
  WhatIf adapted = layouts_asked({{"model", "llama2-7b"}, {"lora_rank", "16"}});
  CHECK_THAT(layout_search_table(searched(adapted)),
             Contains("\nllama2-7b with adam, adapters of rank 16 on frozen weights, on dgx-a100"));
}

TEST_CASE("layout search: a question that no layout can run is an error at once") {
  WhatIf asked = layouts_asked();
  asked.erase("global_batch");
  CHECK_THROWS_WITH(searched(asked), Contains("--global-batch: is missing"));
  CHECK_THROWS_WITH(searched(layouts_asked({{"model", "resnet50"}})),
                    Contains("no transformer blocks"));
  CHECK_THROWS_WITH(searched(layouts_asked({{"recompute", "some"}})),
                    Contains("unknown value 'some'"));
  CHECK_THROWS_WITH(searched(layouts_asked({{"pipeline_schedule", "2f2b"}})), Contains("2f2b"));
}

TEST_CASE("layout search: a row of CSV for each layout, with its columns") {
  const LayoutSearch search = searched(layouts_asked({{"gpus", "8"}}));
  const std::string csv = layout_search_csv(search);
  CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) ==
        search.best.size() + 1);
  CHECK_THAT(csv, Catch::StartsWith("rank,tp,cp,ep,pp,dp,interleave,micro_batch,"));
}

}  // namespace
}  // namespace lambcast
