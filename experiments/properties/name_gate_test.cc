// Gate over the shipped presets: names have no influence. A copy of a description of a model,
// cluster or device under another file name and with another name inside gives the same numbers.
//
// CI forecasts a sample. To forecast all:
//   build/experiments/preset_scale_test "[long]"
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/output/judgement.h"
#include "experiments/phases/run_phases.h"
#include "experiments/scenario/scenario_case.h"
#include "models/device/device.h"
#include "models/shape/load.h"
#include "models/training/run/forecast.h"
#include "sim/base/json.h"
#include "sim/base/temporary_folder.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

// Collects the numbers and booleans of a JSON value by their path in it.
void collect_numbers(const Json& value, const std::string& place,
                     std::map<std::string, std::string>& numbers) {
  if (value.is_structured()) {
    for (const auto& [key, part] : value.items())
      collect_numbers(part, fmt::format("{}/{}", place, key), numbers);
  } else if (value.is_number() || value.is_boolean() || place.ends_with("compute_basis")) {
    numbers[place] = value.dump();
  }
}

using Numbers = std::map<std::string, std::string>;

// Returns every number of the answer, or the error of a run that is rejected.
Numbers numbers_of(const WhatIf& what_if) {
  try {
    Catalog catalog;
    CollectiveCosts costs;
    const Scenario scenario = resolve(what_if, catalog);
    const Forecast result = forecast(scenario.training, costs);
    Numbers numbers;
    collect_numbers(Json::parse(forecast_json(scenario, result, judgement_of(scenario, result))),
                    "", numbers);
    return numbers;
  } catch (const Error&) {
    return {{"/refused", "true"}};
  }
}

std::string called_otherwise(std::string_view text, const std::string& name) {
  std::string renamed(text);
  const std::string said = fmt::format("name = \"{}\"", name);
  const std::size_t at = renamed.find(said);
  REQUIRE(at != std::string::npos);
  return renamed.replace(at, said.size(), "name = \"called-otherwise\"");
}

const WhatIf compressed_run{{"optimizer", "onebit_adam"}, {"freeze_step", "10"}};
const WhatIf divided_run{{"optimizer", "adamw"}, {"framework", "megatron"}, {"tp", "2"}};

// Returns how many of the runs were forecast; the others are rejected.
int check_names(const std::string& model, const std::string& cluster, const WhatIf& run) {
  INFO(model << " on " << cluster << " with " << run.at("optimizer"));
  const TemporaryFolder folder;
  const std::string device = load_cluster(cluster, {}).device;
  const WhatIf asked = with(run, {{"model", model},
                                  {"cluster", cluster},
                                  {"nodes", "2"},
                                  {"micro_batch", "8"},
                                  {"grad_accum", "1"},
                                  {"steps", "100"}});
  const Numbers original = numbers_of(asked);
  const auto check = [&](const std::string& key, const std::string& text, const std::string& name) {
    INFO(key);
    const std::string file = folder.file(key + "-copy.toml", called_otherwise(text, name));
    CHECK(numbers_of(with({{key, file}}, asked)) == original);
  };
  check("model", std::string(model_preset_text(model)), model);
  check("cluster", cluster_text(cluster), cluster);
  check("device", device_text(device), device);
  return original.contains("/refused") ? 0 : 1;
}

// Checks every `stride`-th combination.
int check_every(std::size_t stride) {
  std::size_t at = 0;
  int forecast = 0;
  for (const std::string& cluster : cluster_names())
    for (const std::string& model : model_presets())
      for (const WhatIf& run : {compressed_run, divided_run})
        if (at++ % stride == 0) forecast += check_names(model, cluster, run);
  return forecast;
}

TEST_CASE("name gate: renamed descriptions give the same numbers") { CHECK(check_every(101) > 20); }

TEST_CASE("name gate: renamed descriptions of measured machines give the same numbers") {
  CHECK(check_names("bert-large", "dgx2-v100", compressed_run) == 1);
  CHECK(check_names("resnet50", "dgx-a100-80g", compressed_run) == 1);
}

TEST_CASE("name gate: a phase loads the checkpoint of a model with another name") {
  const TemporaryFolder folder;
  const std::string copy =
      folder.file("copy.toml", called_otherwise(model_preset_text("bert-large"), "bert-large"));
  Catalog catalog;
  const auto phases = [&](const std::string& model) {
    return forecast_phases(complete(), {fmt::format("model={} seq_len=512 steps=10", model)}, {},
                           catalog);
  };
  const PhasedRun renamed = phases(copy), original = phases("bert-large");
  REQUIRE(renamed.phases.size() == 2);
  CHECK(renamed.phases[1].forecast.run.time_s == original.phases[1].forecast.run.time_s);
}

TEST_CASE("name gate: every preset", "[.long]") { CHECK(check_every(1) > 2000); }

}  // namespace
}  // namespace lambcast
