#include "experiments/scenario/what_if.h"

#include <catch2/catch.hpp>

#include <set>

#include "experiments/scenario/precision_word.h"
#include "experiments/scenario/scenario_case.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// Returns a run that uses the key.
WhatIf base_for(std::string_view key) {
  WhatIf what_if{{"model", "mixtral-8x7b"},
                 {"cluster", "hgx-h100-ndr"},
                 {"gpus", "64"},
                 {"optimizer", "adamw"},
                 {"tp", "2"},
                 {"sequence_parallel", "true"},
                 {"pp", "2"},
                 {"ep", "8"},
                 {"framework", "megatron"},
                 {"micro_batch", "1"},
                 {"grad_accum", "8"},
                 {"steps", "100"},
                 {"precision", "bf16"}};
  const std::set<std::string_view> of_onebit{"backend", "cuda_aware", "kernels", "freeze_step"};
  if (of_onebit.contains(key))
    what_if = {{"model", "bert-large"}, {"cluster", "commodity-10gbe"},
               {"gpus", "32"},          {"optimizer", "onebit_lamb"},
               {"micro_batch", "16"},   {"grad_accum", "1"},
               {"steps", "1000"},       {"freeze_step", "100"}};
  if (key == "samples") what_if.erase("steps");
  if (key == "nodes") {
    what_if.erase("gpus");
    what_if["nodes"] = "8";
  }
  if (key == "global_batch") what_if.erase("grad_accum");
  if (key == "shard_ranks" || key == "shard_groups" || key == "full_all_reduce" ||
      key == "offload_optimizer")
    what_if["zero_stage"] = "1";
  return what_if;
}

// Sets each key to a value that no key accepts; a key that is never read would not fail.
TEST_CASE("what-if: every key is read") {
  for (const WhatIfKey& key : what_if_table()) {
    WhatIf what_if = base_for(key.name);
    INFO(key.name);
    Catalog catalog;
    CHECK_NOTHROW(resolve(what_if, catalog));
    what_if.insert_or_assign(std::string(key.name), "no/such-value");
    CHECK_THROWS_AS(resolve(what_if, catalog), Error);
  }
}

TEST_CASE("what-if: the words of an enum parse to the values that they name") {
  Catalog catalog;
  const auto each = [&](const char* key, const auto& printed) {
    for (const std::string& word : words_of(key)) {
      WhatIf what_if = base_for(key);
      what_if.insert_or_assign(key, word);
      INFO(key << " " << word);
      CHECK(printed(resolve(what_if, catalog).training) == word);
    }
  };
  each("fusion", [](const auto& plan) { return name_of(plan.parallelism->framework.fusion); });
  each("split",
       [](const auto& plan) { return parallel::name_of(plan.parallelism->framework.split); });
  each("attention", [](const auto& plan) { return name_of(plan.parallelism->attention); });
  each("network", [](const auto& plan) { return name_of(plan.network); });
  each("recompute", [](const auto& plan) {
    return plan.parallelism->repeated == Repeated::experts
               ? recompute_experts
               : parallel::name_of(plan.parallelism->recompute);
  });
  each("precision", [](const auto& plan) {
    const PrecisionWord said{plan.recipe.precision.weights, plan.parallelism->format};
    return said.word();
  });
}

TEST_CASE("what-if: keys of the device change the one that the run uses") {
  const WhatIf changes{{"device.peak_half", "100TFLOP/s"}, {"device.rates.share_half", "0.5"}};
  for (const WhatIf& device : {WhatIf{}, WhatIf{{"device", "v100-32g"}}}) {
    const auto before = resolved(with(device)).training.device;
    const auto after = resolved(with(device, with(changes))).training.device;
    CHECK(after->name == before->name);
    CHECK(after->peak_half ==
          Sourced<FlopRate>{FlopRate(100e12), {Kind::assumed, "--set device.peak_half"}});
    CHECK(after->rates->reached(MatrixFormat::half) == FlopRate(50e12));
    CHECK(after->copy_bandwidth == before->copy_bandwidth);
  }
}

TEST_CASE("what-if: an unknown key of the device is refused with a suggestion") {
  struct Row {
    std::string key, value, expected;
  };
  const std::string curve = "device.training_curve.bert-large.deepspeed.127.samples_per_s";
  for (const auto& [key, value, expected] : {
           Row{"device.peak_haf", "1 TFLOP/s", "unknown key 'peak_haf', did you mean 'peak_half'?"},
           Row{"device.rates.share_haf", "0.5", "did you mean 'share_half'?"},
           Row{"device.rate.share_half", "0.5", "unknown section 'rate', did you mean 'rates'?"},
           Row{"device.kernel.adam_step.time_us", "[1, 2]", "the device has no kernel"},
           Row{curve, "[1]", "did you mean 'training_curve.bert-large.deepspeed.128'?"},
           Row{"peak.half", "1 TFLOP/s",
               "keys of descriptions begin with cluster., device. or model."},
           Row{"device.copy_bandwidth", "10", "--set device.copy_bandwidth: device.copy_bandwidth"},
           Row{"device.rates.share_half", "1.5", "--set device.rates.share_half: rates.share_half"},
       }) {
    INFO(key << " = " << value);
    CHECK_THAT(refusal(with({{key, value}})), Contains(expected));
  }
}

TEST_CASE("what-if: names are flags' names, and every key has a help text") {
  std::set<std::string_view> names;
  for (const WhatIfKey& key : what_if_table()) {
    INFO(key.name);
    CHECK(names.insert(key.name).second);
    CHECK(key.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_0123456789") ==
          std::string_view::npos);
    CHECK(!help_of(key).empty());
    for (const std::string& word : key.words)
      if (!key.is_switch()) CHECK(help_of(key).find(word) != std::string::npos);
  }
}

}  // namespace
}  // namespace lambcast
