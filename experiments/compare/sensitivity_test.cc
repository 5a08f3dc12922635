#include "experiments/compare/sensitivity.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/compare/numeric_inputs.h"
#include "experiments/compare/sensitivity_figure.h"
#include "experiments/compare/sensitivity_output.h"
#include "experiments/output/plain_name.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

WhatIf sensitivity_asked() {
  return {{"model", "bert-large"}, {"cluster", "commodity-10gbe"}, {"gpus", "32"},
          {"optimizer", "lamb"},   {"global_batch", "4096"},       {"steps", "1000"},
          {"micro_batch", "16"}};
}

const InputEffect& effect_of(const Sensitivity& sensitivity, const std::string& key) {
  const auto found = std::ranges::find(sensitivity.effects, key, &InputEffect::key);
  INFO(key);
  REQUIRE(found != sensitivity.effects.end());
  return *found;
}

TEST_CASE(
    "sensitivity: a run on a slow network depends on its NIC, and the strongest input comes "
    "first") {
  Catalog catalog;
  const Sensitivity sensitivity = sensitivity_of(sensitivity_asked(), 0.05, catalog);
  // Most of the step is communication, nearly all of it bytes over the NIC.
  const InputEffect& nic = effect_of(sensitivity, "cluster.nic.bandwidth");
  CHECK(nic.time_elasticity < -0.6);
  CHECK(nic.time_elasticity > -1);
  CHECK_FALSE(nic.speedup_elasticity.has_value());
  for (std::size_t i = 1; i < sensitivity.effects.size(); ++i)
    CHECK(std::abs(sensitivity.effects[i - 1].time_elasticity) >=
          std::abs(sensitivity.effects[i].time_elasticity));
  // The remaining time is compute: faster curves shorten it, and a larger compute_scale lengthens
  // it by as much.
  const double scale = effect_of(sensitivity, "cluster.stack.compute_scale").time_elasticity;
  CHECK(scale > 0.05);
  CHECK(scale + std::abs(nic.time_elasticity) < 1.01);
  // Twice the batch is about twice the compute and the same communication.
  CHECK(effect_of(sensitivity, "global_batch").time_elasticity > 0);
  CHECK(effect_of(sensitivity, "global_batch").time_elasticity < 1);
  CHECK_FALSE(effect_of(sensitivity, "gpus").provenance.has_value());
  CHECK_THAT(
      sensitivity_table(sensitivity),
      Contains("moves it most: 10 % more of it makes the run") && Contains("To measure first: "));
}

TEST_CASE(
    "sensitivity: the first measurement is one that a user can make, with its share of the "
    "interval") {
  Catalog catalog;
  for (const char* optimizer : {"lamb", "onebit_lamb"}) {
    WhatIf asked = sensitivity_asked();
    asked["optimizer"] = optimizer;
    asked["freeze_step"] = "20%";
    const Sensitivity sensitivity = sensitivity_of(asked, 0.05, catalog);
    CHECK(sensitivity.of_speedup() == (std::string_view(optimizer) == "onebit_lamb"));
    REQUIRE(sensitivity.to_measure() != nullptr);
    double sum = 0, logs = 0;
    for (const IntervalPart& part : sensitivity.parts) {
      sum += sensitivity.share(part);
      CHECK(sensitivity.share(part) <= sensitivity.share(*sensitivity.to_measure()));
      if (sensitivity.of_speedup() && part.speedup_share > 0)
        logs += std::pow(std::log(part.speedup_high / part.speedup_low), 2);
    }
    CHECK(sum == Approx(1));
    const IntervalPart& first = *sensitivity.to_measure();
    if (sensitivity.of_speedup())
      CHECK(sensitivity.share(first) ==
            Approx(std::pow(std::log(first.speedup_high / first.speedup_low), 2) / logs));
    CHECK_THAT(measurement_of(first.source), Contains("lambcast "));
    // In a baseline run only the all-reduce depends on the NIC.
    const InputEffect& nic = effect_of(sensitivity, "cluster.nic.bandwidth");
    REQUIRE(nic.source.has_value());
    CHECK_THAT(name_of_source(*nic.source), Contains(" over nccl"));
    CHECK(effect_of(sensitivity, "device.peak_half").source !=
          effect_of(sensitivity, "cluster.nic.bandwidth").source);
    CHECK_FALSE(effect_of(sensitivity, "gpus").source.has_value());
    double of_inputs = 0;
    for (const InputEffect& effect : sensitivity.effects)
      of_inputs += effect.interval_share.value_or(0);
    CHECK(of_inputs > 0.9);
    CHECK(of_inputs < 1 + 1e-9);
    CHECK(*nic.interval_share >
          *effect_of(sensitivity, "cluster.nccl.Simple.network_hop").interval_share);
  }
}

TEST_CASE("sensitivity: the speed-up of a run that hardly compresses is not judged") {
  Catalog catalog;
  WhatIf asked = sensitivity_asked();
  asked["optimizer"] = "onebit_lamb";
  asked["freeze_step"] = "990";
  const Sensitivity sensitivity = sensitivity_of(asked, 0.05, catalog);
  CHECK_FALSE(sensitivity.of_speedup());
  for (const InputEffect& effect : sensitivity.effects)
    CHECK_FALSE(effect.speedup_elasticity.has_value());
  CHECK_THAT(sensitivity_table(sensitivity),
             Contains("Its speed-up is not judged: only ") && Contains("--freeze-step 20%"));
}

TEST_CASE("sensitivity: the picture has a bar for each input of the table") {
  Catalog catalog;
  const Sensitivity sensitivity = sensitivity_of(sensitivity_asked(), 0.05, catalog);
  const report::Figure figure = sensitivity_figure(sensitivity);
  CHECK(figure.left_out.empty());
  CHECK_THAT(figure.data, Contains("0 \"" + sensitivity.effects.front().key + "\" "));
  CHECK_THAT(figure.script, Contains("'NIC bandwidth' ") && Contains("boxxyerror"));
  Sensitivity none = sensitivity;
  none.effects.clear();
  CHECK_FALSE(sensitivity_figure(none).left_out.empty());
}

TEST_CASE("sensitivity: compression makes a run depend less on the NIC, and its speed-up more") {
  Catalog catalog;
  const double plain =
      effect_of(sensitivity_of(sensitivity_asked(), 0.05, catalog), "cluster.nic.bandwidth")
          .time_elasticity;
  WhatIf onebit = sensitivity_asked();
  onebit["optimizer"] = "onebit_lamb";
  onebit["freeze_step"] = "200";
  const Sensitivity compressed = sensitivity_of(onebit, 0.05, catalog);
  const InputEffect& nic = effect_of(compressed, "cluster.nic.bandwidth");
  CHECK(nic.time_elasticity > plain);
  REQUIRE(nic.speedup_elasticity.has_value());
  // ln S = ln T_plain - ln T, so the elasticity of S is that of T_plain minus that of T.
  CHECK(*nic.speedup_elasticity == Approx(plain - nic.time_elasticity).margin(0.01));
  CHECK(effect_of(compressed, "freeze_step").time_elasticity > 0);
}

TEST_CASE("sensitivity: scaling an input has the effect of setting its key") {
  Catalog catalog;
  const Scenario scenario = resolve(sensitivity_asked(), catalog);
  const auto time_of = [&](const TrainingPlan& training) {
    CollectiveCosts costs;
    return forecast(training, costs).run.time_s;
  };
  const auto inputs = numeric_inputs(scenario.training);
  std::set<std::string> keys;
  for (const NumericInput& input : inputs) CHECK(keys.insert(input.key).second);
  const double before = time_of(scenario.training);
  const Cluster& cluster = *scenario.training.cluster;
  const std::pair<const char*, double> halves[] = {
      {"cluster.nccl.nic_efficiency", cluster.nccl.nic_efficiency.value / 2},
      {"cluster.stack.optimizer_scale", cluster.stack.optimizer_scale.value / 2},
      {"cluster.stack.compute_scale", cluster.stack.compute_scale.value / 2}};
  for (const auto& [key, half] : halves) {
    INFO(key);
    const auto input = std::ranges::find(inputs, key, &NumericInput::key);
    REQUIRE(input != inputs.end());
    const TrainingPlan moved = scaled(scenario.training, *input, 0.5);
    CHECK(std::abs(time_of(moved) / before - 1) > 1e-4);
    WhatIf said = sensitivity_asked();
    said[key] = fmt::format("{}", half);
    CHECK(time_of(moved) == Approx(time_of(resolve(said, catalog).training)).epsilon(1e-9));
  }
}

TEST_CASE("sensitivity: inputs without a neighbouring value that runs are reported") {
  Catalog catalog;
  WhatIf one = sensitivity_asked();
  one["cluster"] = "paper-eth40-v100";
  one["global_batch"] = "96";
  one["micro_batch"] = "3";
  const Sensitivity sensitivity = sensitivity_of(one, 0.05, catalog);
  CHECK(sensitivity.fixed == std::vector<std::string>{"micro_batch"});
  CHECK_THAT(sensitivity_table(sensitivity),
             Contains("micro batch: neither its double nor its half can run"));
}

TEST_CASE("sensitivity: the table has plain names, each of one input, or keys on request") {
  Catalog catalog;
  for (const char* cluster : {"commodity-10gbe", "paper-eth40-v100", "hgx-h100-ndr"}) {
    WhatIf asked = sensitivity_asked();
    asked["cluster"] = cluster;
    const Sensitivity sensitivity = sensitivity_of(asked, 0.05, catalog);
    std::map<std::string, std::string> key_of;
    for (const InputEffect& effect : sensitivity.effects) {
      const std::string name = plain_name(effect.key);
      INFO(cluster << ": " << effect.key << ": " << name);
      CHECK(name.find_first_of("._") == std::string::npos);
      if (!effect.key.ends_with("_us") && !effect.key.ends_with("samples_per_s"))
        CHECK(key_of.emplace(name, effect.key).second);
    }
    const std::string table = sensitivity_table(sensitivity);
    CHECK_THAT(table.substr(table.find("\n\n")), !Contains("cluster.") && !Contains("device."));
  }
}

TEST_CASE("sensitivity: JSON and CSV hold every input, the table only those with an effect") {
  Catalog catalog;
  const Sensitivity sensitivity = sensitivity_of(sensitivity_asked(), 0.05, catalog);
  const auto json = nlohmann::json::parse(sensitivity_json(sensitivity));
  CHECK(json["inputs"].size() == sensitivity.effects.size());
  const std::string csv = sensitivity_csv(sensitivity);
  CHECK(static_cast<std::size_t>(std::ranges::count(csv, '\n')) == sensitivity.effects.size() + 1);
  // The run uses NCCL, so a parameter of MPI has no effect.
  CHECK(effect_of(sensitivity, "cluster.mpi.nic_efficiency").time_elasticity == 0);
  CHECK_THAT(sensitivity_table(sensitivity, {.all = false, .keys = true}),
             !Contains("cluster.mpi.nic_efficiency"));
  CHECK_THAT(sensitivity_table(sensitivity, {.all = true, .keys = true}),
             Contains("cluster.mpi.nic_efficiency"));
}

TEST_CASE("sensitivity: every elasticity is a finite number, however small a choice is") {
  Catalog catalog;
  for (const char* freeze_step : {"0", "1", "2", "9", "999", "1000"}) {
    WhatIf one = sensitivity_asked();
    one["optimizer"] = "onebit_lamb";
    one["freeze_step"] = freeze_step;
    INFO(freeze_step);
    const Sensitivity sensitivity = sensitivity_of(one, 0.05, catalog);
    for (const InputEffect& effect : sensitivity.effects) {
      INFO(effect.key);
      CHECK(std::isfinite(effect.time_elasticity));
      CHECK(std::isfinite(effect.speedup_elasticity.value_or(0)));
      CHECK(std::isfinite(effect.interval_share.value_or(0)));
    }
    CHECK(sensitivity_table(sensitivity, {.all = true, .keys = true}).size() < 100'000);
  }
}

}  // namespace
}  // namespace lambcast
