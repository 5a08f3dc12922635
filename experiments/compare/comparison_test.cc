#include "experiments/compare/comparison.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>

#include "experiments/compare/comparison_output.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf compared() {
  return {{"model", "bert-large"},  {"gpus", "32"},    {"optimizer", "lamb"},
          {"global_batch", "4096"}, {"steps", "1000"}, {"micro_batch", "16"}};
}

// Returns a what-if without an optimizer, for comparisons that list optimizers.
WhatIf question_of_several() {
  WhatIf asked = compared();
  asked.erase("optimizer");
  return asked;
}

std::vector<std::string> names_of(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const Contestant& contestant : comparison.ranked) names.push_back(contestant.name);
  return names;
}

TEST_CASE("comparison: clusters are listed fastest first, each as simulate forecasts it") {
  Catalog catalog;
  const Comparison comparison =
      compare(compared(), {{"commodity-10gbe", "hgx-h100-ndr", "dgx-a100-80g"}, {}, {}}, catalog);
  CHECK(names_of(comparison) ==
        std::vector<std::string>{"hgx-h100-ndr", "dgx-a100-80g", "commodity-10gbe"});
  CHECK(comparison.reference().name == "commodity-10gbe");
  CHECK(comparison.answered());
  for (const Contestant& contestant : comparison.ranked) {
    WhatIf alone = compared();
    alone["cluster"] = contestant.name;
    CollectiveCosts costs;
    const Scenario plain = resolve(alone, catalog);
    const Forecast of_plain = forecast(plain.training, costs);
    CHECK(contestant.forecast.run.time_s == of_plain.run.time_s);
    alone["optimizer"] = "onebit_lamb";
    alone["freeze_step"] = "20%";
    const Scenario onebit = resolve(alone, catalog);
    REQUIRE(contestant.compression.speedup.has_value());
    CHECK(contestant.compression.speedup->value ==
          Approx(forecast(onebit.training, costs).run.speedup_vs_baseline).epsilon(1e-12));
    CHECK(contestant.compression.warmup_assumed);
  }
  const std::string text = comparison_table(comparison);
  CHECK_THAT(text,
             Catch::StartsWith("Fastest: hgx-h100-ndr, ") &&
                 Contains("x) as fast as commodity-10gbe") &&
                 Contains("Cheapest of those with a price: ") && Contains("price published: ") &&
                 Contains("Without a price: commodity-10gbe") &&
                 Contains("Does onebit_lamb pay, with a warm-up of 20% of the run (assumed)? "));
}

// The verdict with a plain optimizer and the ranking of its 1-bit form are of one warm-up.
TEST_CASE("comparison: a 1-bit optimizer without a freeze step warms up as its verdict says") {
  Catalog catalog;
  for (const char* plain : {"lamb", "adam"}) {
    const std::string onebit = std::string("onebit_") + plain;
    const Comparison comparison =
        compare(question_of_several(), {{"commodity-10gbe"}, {plain, onebit}, {}}, catalog);
    REQUIRE(comparison.ranked.size() == 2);
    const auto speedup_of = [&](std::size_t place) {
      CHECK(comparison.ranked[place].compression.warmup_assumed);
      return comparison.ranked[place].compression.speedup.value().value;
    };
    CHECK(speedup_of(0) == Approx(speedup_of(1)));
    CHECK_THAT(comparison_table(comparison), Contains("warm up for 20% of the run (assumed"));
    CHECK((speedup_of(0) > 1) == is_onebit(comparison.ranked[0].scenario.training.optimizer()));
  }
}

TEST_CASE("comparison: where it is not certain the ratio stands once, and what would tell") {
  Catalog catalog;
  const Comparison comparison = compare({{"model", "bert-large"},
                                         {"gpus", "64"},
                                         {"optimizer", "lamb"},
                                         {"global_batch", "65536"},
                                         {"micro_batch", "16"},
                                         {"steps", "5993"}},
                                        {{"dgx-a100-80g", "perlmutter-a100"}, {}, {}}, catalog);
  const std::string first = comparison_table(comparison).substr(0, 400);
  INFO(first);
  CHECK_THAT(first, Contains(". Which of the two is faster is not certain. Measure first: "));
  CHECK(first.find("times as long") == first.rfind("times as long"));
}

TEST_CASE("comparison: equal parts of two descriptions have common errors") {
  Catalog catalog;
  const TemporaryFolder folder;
  for (const char* preset : {"commodity-100gbe", "perlmutter-a100"}) {
    const std::string text = cluster_text(preset);
    const std::string one = folder.file("one.toml", text), copy = folder.file("copy.toml", text);
    const Comparison same = compare(compared(), {{one, copy}, {}, {}}, catalog);
    const RatioInterval ratio = *same.ratio(same.ranked[0], same.ranked[1]);
    INFO(preset);
    CHECK(ratio.value == 1);
    CHECK(ratio.low == 1);
    CHECK(ratio.high == 1);
    CHECK_THAT(comparison_table(same), Contains("takes exactly as long"));
  }
  // The same machines with different NICs can be ranked, though neither run time is accurate.
  const Comparison nics =
      compare(compared(), {{"commodity-10gbe", "commodity-100gbe"}, {}, {}}, catalog);
  const Contestant &fast = nics.ranked[0], &slow = nics.ranked[1];
  REQUIRE(slow.name == "commodity-10gbe");
  const RatioInterval ratio = *nics.ratio(slow, fast);
  CHECK(ratio.low > 1);
  const auto relative = [](const Contestant& of) {
    return of.forecast.run.time_high_s / of.forecast.run.time_low_s;
  };
  // The slower run has the narrower interval, since its NICs bound it at both ends. The ratio may
  // be wider than that interval.
  CHECK(ratio.high / ratio.low < std::max(relative(fast), relative(slow)));
  // TCP on a NIC without measurements has an error that the other cluster does not share.
  const Comparison unmeasured =
      compare(compared(), {{"commodity-10gbe", "commodity-25gbe"}, {}, {}}, catalog);
  const RatioInterval wide = *unmeasured.ratio(unmeasured.ranked[1], unmeasured.ranked[0]);
  CHECK(wide.low < 1);
  CHECK(wide.high > 1);
  // Clusters with different networks share no network errors; with different GPUs they share no
  // errors at all.
  const Comparison others =
      compare(compared(), {{"commodity-100gbe", "dgx-a100-80g", "hgx-h100-ndr"}, {}, {}}, catalog);
  const auto common = [&](const char* a, const char* b) {
    const auto plan = [&](const char* name) -> const TrainingPlan& {
      return std::ranges::find(others.ranked, name, &Contestant::name)->scenario.training;
    };
    return common_sources(plan(a), plan(b)).count();
  };
  CHECK(common("dgx-a100-80g", "dgx-a100-80g") == error_sources);
  CHECK(common("dgx-a100-80g", "hgx-h100-ndr") == 0);
  // The 40 GB and the 80 GB A100 are different devices, so their clusters share no errors.
  CHECK(common("commodity-100gbe", "dgx-a100-80g") == 0);
}

TEST_CASE("comparison: the parts of a mean step add up to it") {
  Catalog catalog;
  WhatIf asked = question_of_several();
  asked["freeze_step"] = "20%";
  asked["cluster"] = "commodity-10gbe";
  const Comparison comparison = compare(
      asked, {{}, {"lamb", "onebit_lamb", "onebit_adam"}, {"all_reduce", "powersgd:4"}}, catalog);
  CHECK(names_of(comparison).size() == 4);  // each 1-bit optimizer appears once
  for (const Contestant& contestant : comparison.ranked) {
    INFO(contestant.name);
    const MeanStep& step = contestant.step;
    CHECK(std::accumulate(step.parts.us.begin(), step.parts.us.end(), 0.0) ==
          Approx(step.time_us).epsilon(1e-6));
    CHECK(step.time_us * 1e-6 * 1000 == Approx(contestant.forecast.run.time_s));
    CHECK(step.time_low_us <= step.time_us);
    CHECK(step.time_us <= step.time_high_us);
  }
  CHECK(comparison.reference().name == "all_reduce, lamb");
  const auto bytes = [&](const std::string& name) {
    const auto found = std::ranges::find(comparison.ranked, name, &Contestant::name);
    REQUIRE(found != comparison.ranked.end());
    return found->step.wire_bytes_per_gpu;
  };
  CHECK(bytes("powersgd:4, lamb") < bytes("onebit_lamb"));
  CHECK(bytes("onebit_lamb") < bytes("all_reduce, lamb"));
  // With one cluster, the output makes no statement about others.
  CHECK_THAT(comparison_table(comparison), !Contains("overlap") && !Contains("pay?"));
}

TEST_CASE("comparison: contestants that cannot run are last, after those that do not fit") {
  Catalog catalog;
  WhatIf asked = question_of_several();
  asked["gpus"] = "16";
  asked["model"] = "gpt2-xl";
  asked["micro_batch"] = "2";
  asked["zero_stage"] = "1";
  asked["cluster"] = "dgx-a100-80g";
  const Comparison comparison = compare(asked, {{}, {"onebit_adam", "adam", "adamw"}, {}}, catalog);
  CHECK(comparison.ranked.back().name == "onebit_adam");
  CHECK_FALSE(comparison.ranked.back().refused.empty());
  CHECK(comparison.answered());
  // The first contestant named does not run, so no ratio is relative to it.
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  CHECK(json["results"][0]["speedup_vs_first"].is_null());
  CHECK_THAT(json["results"][2]["status"].get<std::string>(), Catch::StartsWith("infeasible: "));
  CHECK_THAT(comparison_table(comparison), Contains("onebit_adam: cannot run: "));
  CHECK_FALSE(json["results"][0]["compression_why_not"].get<std::string>().empty());

  // A reason that several contestants share is printed once, with their names.
  const Comparison refused =
      compare(asked, {{}, {"adam", "onebit_adam", "onebit_lamb"}, {}}, catalog);
  const std::string text = comparison_table(refused);
  INFO(text);
  for (const Contestant& contestant : refused.ranked) {
    if (contestant.refused.empty()) continue;
    const std::size_t at = text.find(": cannot run: " + contestant.refused);
    REQUIRE(at != std::string::npos);
    CHECK(text.find(": cannot run: " + contestant.refused, at + 1) == std::string::npos);
  }

  WhatIf large = compared();
  large["model"] = "gpt2-xl";
  large["micro_batch"] = "4";
  const Comparison memory = compare(large, {{"paper-eth40-v100", "dgx-a100-80g"}, {}, {}}, catalog);
  CHECK(names_of(memory) == std::vector<std::string>{"dgx-a100-80g", "paper-eth40-v100"});
  CHECK_FALSE(memory.ranked.back().forecast.memory.fits);
  CHECK_THAT(comparison_table(memory), Contains("paper-eth40-v100: needs "));
}

// Memory of 79.6 GB +- 9 % on a GPU of 85.9 GB.
TEST_CASE("comparison: points with tight memory are marked, as are points that do not fit") {
  Catalog catalog;
  const WhatIf asked{{"model", "gpt2-xl"},  {"gpus", "8"},       {"optimizer", "adamw"},
                     {"micro_batch", "16"}, {"grad_accum", "1"}, {"steps", "100"}};
  const Comparison comparison = compare(asked, {{"dgx-a100-80g", "hgx-h100-ndr"}, {}, {}}, catalog);
  const std::string table = comparison_table(comparison);
  for (const char* cluster : {"dgx-a100-80g", "hgx-h100-ndr"})
    CHECK_THAT(table, Contains(std::string(cluster) + ": may not fit: needs up to "));
  CHECK_THAT(table, Contains("GB! "));
}

TEST_CASE("comparison: CSV has the content of JSON, one row per contestant") {
  Catalog catalog;
  WhatIf asked = compared();
  asked["cluster"] = "commodity-10gbe";
  const Comparison comparison = compare(asked, {{}, {}, {"all_reduce", "local:16"}}, catalog);
  const std::string csv = comparison_csv(comparison);
  CHECK(std::ranges::count(csv, '\n') == 3);
  CHECK_THAT(csv, Catch::StartsWith("name,cluster,optimizer,exchange,gpus,run_time_s,") &&
                      Contains("\nlocal:16,commodity-10gbe,lamb,local:16,32,"));
  const auto json = nlohmann::json::parse(comparison_json(comparison));
  CHECK(json["first"] == "all_reduce");
  CHECK(json["results"][0]["speedup_vs_first"].get<double>() > 1);
  CHECK(json["results"][0]["cost_usd"].is_null());
}

TEST_CASE("comparison: one contestant, a name twice and unknown words are refused") {
  Catalog catalog;
  const auto refuses = [&](const ComparisonAxes& axes, const char* message) {
    const WhatIf asked = axes.optimizers.empty() ? compared() : question_of_several();
    CHECK_THROWS_WITH(compare(asked, axes, catalog), Contains(message));
  };
  refuses({{"dgx-a100-80g"}, {}, {}}, "compare needs two or more");
  refuses({{"dgx-a100-80g", "dgx-a100-80g"}, {}, {}}, "--clusters: 'dgx-a100-80g' is named twice");
  refuses({{"dgx-a100-80g", "dgx-a100-80"}, {}, {}}, "did you mean 'dgx-a100-80g'");
  refuses({{"dgx-a100-80g"}, {"lamb", "onebitlamb"}, {}}, "did you mean 'onebit_lamb'");
  refuses({{"dgx-a100-80g"}, {}, {"fp8", "powersgd"}}, "--exchanges: ");
  CHECK_THROWS_WITH(compare(compared(), {{}, {"lamb", "adam"}, {}}, catalog),
                    Contains("--optimizer: contradicts --optimizers"));
}

}  // namespace
}  // namespace lambcast
