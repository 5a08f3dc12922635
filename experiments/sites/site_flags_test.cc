// Property: `sites` drops no flag silently. A value that changes the forecast or a finding of a
// single site must change the answer of `sites`, be refused, or be named in a finding.
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "experiments/output/mean_step.h"
#include "experiments/scenario/scenario.h"
#include "experiments/scenario/what_if.h"
#include "experiments/scenario/words.h"
#include "experiments/sites/site_forecast.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "sim/base/json.h"

namespace lambcast {
namespace {

// Values to try for keys that take neither listed words nor numbers.
const std::map<std::string_view, std::vector<std::string>> texts{
    {"model", {"bert-base"}},
    {"cluster", {"two-regions"}},
    {"device", {"h100-sxm"}},
    {"hosts", {"n[1-8]"}},
    {"versions", {"deepspeed=0.5"}},
    {"exchange", {"int8", "fp16", "local:16"}},
    {"order", {"tp-cp-ep-pp-dp"}},
    {"recompute", {"full", "selective"}},
    {"state_types", {"bf16:bf16:fp32"}},
    {"freeze_step", {"50", "10%"}},
    {"imbalance", {"1.5"}},
    {"rampup_batch_size", {"32:32:100000"}}};

std::vector<std::string> values_of(const WhatIfKey& key) {
  if (const auto given = texts.find(key.name); given != texts.end()) return given->second;
  if (!key.words.empty()) return key.words;
  if (key.type == ValueType::text) return {"no-such-file.txt"};
  return {"1", "2", "3", "1e4"};
}

// Numbers and findings of an answer.
struct Answer {
  Json numbers;
  std::vector<Finding> findings;
  bool operator==(const Answer& other) const {
    return numbers == other.numbers &&
           std::ranges::equal(findings, other.findings, {}, &Finding::message, &Finding::message);
  }
};

Answer of_sites(const WhatIf& asked, const OuterChoice& choice, Catalog& catalog) {
  const SiteForecast forecast = forecast_sites(asked, choice, catalog);
  Answer answer{parse_json(site_forecast_json(forecast)), forecast.findings};
  answer.numbers.erase("findings");
  return answer;
}

// Returns the ordinary forecast of one site: its step, run and memory.
Answer of_one_site(WhatIf asked, const Site& site, Catalog& catalog) {
  asked.insert_or_assign("cluster", site.cluster);
  asked.insert({"gpus", std::to_string(site.gpus)});
  CollectiveCosts costs;
  const Scenario scenario = resolve(asked, catalog);
  const Forecast forecast = forecast_alone(scenario.training, costs);
  const MeanStep step = mean_step(forecast);
  return {Json::array({step.time_us, step.time_low_us, step.time_high_us, scenario.training.steps,
                       forecast.memory.peak.value()}),
          scenario.findings};
}

// Returns whether the answer to the value differs from `base`, or the value is refused.
template <typename Ask>
bool is_heard(const Answer& base, Ask ask) {
  try {
    return !(ask() == base);
  } catch (const Error&) {
    return true;
  }
}

// Returns the values that change the forecast of a single site and that `sites` drops.
std::vector<std::string> dropped_values(const WhatIf& world, Catalog& catalog) {
  const Site site = load_sites(world.at("cluster")).sites.front();
  const Answer together = of_sites(world, {}, catalog), alone = of_one_site(world, site, catalog);
  std::vector<std::string> dropped;
  for (const WhatIfKey& key : what_if_table()) {
    if (key.name == "cluster") continue;  // the sites themselves
    for (const std::string& value : values_of(key)) {
      WhatIf stated = world;
      stated[std::string(key.name)] = value;
      if (is_heard(alone, [&] { return of_one_site(stated, site, catalog); }) &&
          !is_heard(together, [&] { return of_sites(stated, {}, catalog); }))
        dropped.push_back(fmt::format("{} {}", flag(key.name).key, value));
    }
  }
  return dropped;
}

WhatIf world_of(const char* model, const char* optimizer, WhatIf more) {
  more.insert({{"model", model},
               {"cluster", "two-data-centres"},
               {"optimizer", optimizer},
               {"global_batch", "256"},
               {"micro_batch", "2"},
               {"steps", "200"}});
  return more;
}

TEST_CASE("sites: what changes the forecast of one site changes that of sites, or is refused") {
  Catalog catalog;
  const std::vector<WhatIf> worlds{
      world_of("bert-large", "onebit_lamb", {{"freeze_step", "40"}}),
      world_of("gpt2", "adamw",
               {{"framework", "megatron"}, {"tp", "2"}, {"pp", "2"}, {"zero_stage", "1"}}),
      world_of("llama2-7b", "muon",
               {{"framework", "torchtitan"}, {"zero_stage", "3"}, {"precision", "bf16"}})};
  for (const WhatIf& world : worlds)
    for (const std::string& value : dropped_values(world, catalog))
      FAIL_CHECK(world.at("model") << " with " << world.at("optimizer") << ": " << value);
}

TEST_CASE("sites: every flag of the exchange changes the answer") {
  Catalog catalog;
  const WhatIf world = world_of("bert-large", "adam", {});
  const OuterChoice blocking{.codec = "int8", .every = 10, .fragments = 2};
  const Answer base = of_sites(world, blocking, catalog);
  const auto changed = [&](auto member, auto value) {
    OuterChoice choice = blocking;
    choice.*member = value;
    return is_heard(base, [&] { return of_sites(world, choice, catalog); });
  };
  CHECK(changed(&OuterChoice::codec, "int4"));
  CHECK(changed(&OuterChoice::every, 20));
  CHECK(changed(&OuterChoice::fragments, 1));
  CHECK(changed(&OuterChoice::delay, 1));
  CHECK(changed(&OuterChoice::by_layer, true));
  CHECK(changed(&OuterChoice::quorum, 1));
  CHECK(changed(&OuterChoice::decoupled, true));
  CHECK(changed(&OuterChoice::slow, std::vector<std::string>{"1:1.3"}));
}

}  // namespace
}  // namespace lambcast
