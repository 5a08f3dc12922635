#include "experiments/compare/numeric_inputs.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "experiments/scenario/invalid_value.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

bool names(const Forecast& forecast, const Provenance& provenance) {
  return std::ranges::any_of(forecast.sources.shares(), [&](const CostSource& source) {
    return source.provenance == provenance;
  });
}

// Returns the largest share of the run that may depend on numbers of this origin. With s their
// share of the time of all operations, the share of a run whose other operations overlap is at most
// s / (1 - s). The memory rate of kernels (memory_rate) is a share of the copy bandwidth.
double share_of(const Forecast& forecast, const NumericInput& input) {
  const bool copies = input.key == "device.copy_bandwidth";
  double share = 0;
  for (const CostSource& source : forecast.sources.shares())
    if (source.provenance == input.provenance || (copies && source.cost == "memory_rate"))
      share += source.share;
  return share < 0.5 ? share / (1 - share) : 1;
}

// Returns whether half or twice the number changes the run time by at least 1 %.
bool moves(const TrainingPlan& training, const NumericInput& input, double time_s) {
  for (const double factor : {0.5, 2.0}) {
    CollectiveCosts costs;
    const double other = forecast(scaled(training, input, factor), costs).run.time_s;
    if (std::abs(other / time_s - 1) > 0.01) return true;
  }
  return false;
}

// Returns whether the input is a constant: a wire format of NCCL (nccl_tuning.h), or a scale at its
// default.
bool is_constant(const NumericInput& input) {
  return input.key.ends_with(".efficiency") ||
         (input.key.starts_with("cluster.stack.") && input.number == 1);
}

// Runs that cover every kind of work of a step, on networks and devices of several kinds.
const WhatIf worlds[] = {
    {{"model", "bert-large"}, {"cluster", "commodity-25gbe"}, {"gpus", "32"}, {"steps", "1000"}},
    {{"model", "bert-large"},
     {"cluster", "commodity-10gbe"},
     {"gpus", "16"},
     {"optimizer", "onebit_lamb"},
     {"backend", "mpi"},
     {"freeze_step", "20%"}},
    {{"model", "bert-large"},
     {"cluster", "paper-edr100-v100"},
     {"gpus", "64"},
     {"optimizer", "onebit_adam"},
     {"freeze_step", "20%"}},
    {{"model", "gpt2"},
     {"cluster", "hgx-h100-ndr"},
     {"gpus", "1"},
     {"framework", "megatron"},
     {"micro_batch", "4"}},
    {{"model", "llama2-7b"},
     {"cluster", "dgx-a100-80g"},
     {"gpus", "64"},
     {"tp", "4"},
     {"pp", "2"},
     {"grad_accum", "8"},
     {"micro_batch", "1"}},
    {{"model", "llama2-7b"},
     {"cluster", "hgx-h100-ndr"},
     {"gpus", "16"},
     {"precision", "fp8"},
     {"zero_stage", "3"},
     {"micro_batch", "1"}},
    {{"model", "llama2-7b"},
     {"cluster", "dgx-a100-80g"},
     {"gpus", "16"},
     {"offload_optimizer", "cpu"},
     {"zero_stage", "2"},
     {"micro_batch", "1"}},
    {{"model", "mixtral-8x7b"},
     {"cluster", "hgx-h100-ndr"},
     {"gpus", "64"},
     {"ep", "8"},
     {"micro_batch", "1"}},
    {{"model", "bert-large"},
     {"cluster", "dgx1-v100"},
     {"gpus", "8"},
     {"precision", "fp32"},
     {"framework", "megatron"},
     {"micro_batch", "4"}},
    {{"model", "gpt2"},
     {"cluster", "dgx1-v100"},
     {"gpus", "8"},
     {"tp", "2"},
     {"framework", "megatron"},
     {"micro_batch", "4"}},
    {{"model", "llama2-7b"},
     {"cluster", "dgx-a100-80g"},
     {"gpus", "16"},
     {"zero_stage", "3"},
     {"quantized_weights", "true"},
     {"micro_batch", "1"}},
    {{"model", "resnet50"}, {"cluster", "commodity-10gbe"}, {"gpus", "8"}, {"micro_batch", "32"}},
    {{"model", "gpt2-xl"},
     {"cluster", "dgx-a100-80g"},
     {"gpus", "16"},
     {"optimizer", "galore_adamw8bit"},
     {"micro_batch", "4"}},
    {{"model", "bert-large"},
     {"cluster", "aws-p3dn"},
     {"gpus", "32"},
     {"overlap", "ddp"},
     {"precision", "fp32"}}};

WhatIf with_defaults(WhatIf asked) {
  asked.try_emplace("optimizer", "adam");
  asked.try_emplace("steps", "1000");
  asked.try_emplace("grad_accum", "1");
  asked.try_emplace("micro_batch", "8");
  return asked;
}

TEST_CASE("numeric inputs: a number that moves a forecast is among its sources") {
  Catalog catalog;
  for (const WhatIf& world : worlds) {
    const WhatIf asked = with_defaults(world);
    const TrainingPlan training = resolve(asked, catalog).training;
    CollectiveCosts costs;
    const Forecast before = forecast(training, costs);
    for (const NumericInput& input : numeric_inputs(training)) {
      if (is_constant(input)) continue;
      if (!moves(training, input, before.run.time_s)) continue;
      INFO(asked.at("model") << " on " << asked.at("cluster") << ": " << input.key << " = "
                             << input.value << ", " << name_of(input.provenance.kind) << ", "
                             << input.provenance.source);
      CHECK(names(before, input.provenance));
      // A change of 1 % changes the time by at most the share that depends on the number.
      CollectiveCosts others;
      const Forecast nudged = forecast(scaled(training, input, 1.01), others);
      const double moved = std::abs(nudged.run.time_s / before.run.time_s - 1) / 0.01;
      CHECK(moved <= share_of(before, input) + 0.1);
    }
  }
}

// Returns the what-if with the input multiplied by `factor`, as with `--set`.
WhatIf with_input(WhatIf asked, const NumericInput& input, double factor) {
  asked[input.key] = input.text(input.number * factor);
  return asked;
}

// Returns whether the value of the input was rejected as out of range, as a share above one is.
bool is_out_of_range(const InvalidValue& error, const NumericInput& input) {
  return input.key.starts_with(error.key()) &&
         (Contains("range") || Contains("at most 1")).match(error.what());
}

// Returns whether the input is a latency of a protocol that also sets the latency within a node
// (topologies/library.cc).
bool says_of_others(const NumericInput& input) {
  return input.key.ends_with(".base") || input.key.ends_with(".local_hop");
}

const NumericInput& same(const std::vector<NumericInput>& inputs, const NumericInput& input) {
  const auto found = std::ranges::find(inputs, input.key, &NumericInput::key);
  REQUIRE(found != inputs.end());
  return *found;
}

TEST_CASE("numeric inputs: every key can be set, and its own value has no effect") {
  Catalog catalog;
  for (const WhatIf& world : worlds) {
    const WhatIf asked = with_defaults(world);
    const TrainingPlan training = resolve(asked, catalog).training;
    const auto inputs = numeric_inputs(training);
    for (const NumericInput& input : inputs) {
      INFO(asked.at("model") << " on " << asked.at("cluster") << ": " << input.key << " = "
                             << input.text(input.number));
      const auto at = [&](double factor) {
        return numeric_inputs(resolve(with_input(asked, input, factor), catalog).training);
      };
      const auto own = at(1);
      for (const NumericInput& other : inputs)
        if (&other == &input || !says_of_others(input))
          CHECK(same(own, other).text(same(own, other).number) == other.text(other.number));
      // A share of 1 cannot be raised, so it is lowered instead.
      double factor = 1.5;
      std::vector<NumericInput> other;
      try {
        other = at(factor);
      } catch (const InvalidValue& error) {
        INFO(error.what());
        REQUIRE(is_out_of_range(error, input));
        other = at(factor = 1 / 1.5);
      }
      const NumericInput& moved = same(other, input);
      if (input.parse == nullptr)  // the input is a curve
        CHECK(moved.text(1) == input.text(factor));
      else
        CHECK(moved.number == Approx(input.number * factor).epsilon(1e-6));
      CHECK(moved.provenance == Provenance{Kind::assumed, "--set " + input.key});
    }
  }
}

}  // namespace
}  // namespace lambcast
