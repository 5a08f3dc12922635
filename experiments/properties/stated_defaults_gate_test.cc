// Gate: stating a key at its default changes no number and no finding of an answer.
//
// In each world, each what-if key is set to the value that the run resolved without it. The answer
// is the JSON of `simulate` without its inputs.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <charconv>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/output/forecast_output.h"
#include "experiments/properties/stated_defaults.h"
#include "experiments/scenario/words.h"
#include "models/shape/load.h"
#include "models/training/memory/memory.h"
#include "models/training/run/forecast.h"
#include "sim/base/json.h"
#include "sim/base/table.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

// Keys that exclude each other, since they state the same number in different ways. The world's own
// key is kept.
const std::map<std::string_view, std::vector<std::string>> instead_of{
    {"nodes", {"gpus"}},
    {"samples", {"steps"}},
    {"tokens", {"steps"}},
    {"global_batch", {"grad_accum"}},
    {"grad_accum", {"global_batch"}}};

// Codes of findings about keys that are not given; setting the key removes them.
const std::set<std::string> of_unstated{"steps-assumed", "seq-len-assumed", "backend-of-cluster"};

Json answer_to(const WhatIf& what_if, Catalog& catalog, CollectiveCosts& costs) {
  const Scenario scenario = resolve(what_if, catalog);
  const Forecast of = forecast(scenario.training, costs);
  Json answer = Json::parse(forecast_json(scenario, of, judgement_of(scenario, of)));
  answer.erase("inputs");
  return answer;
}

// Returns the answer without the findings about the setting itself: those that begin with the flag,
// and those about keys that are not given.
Json compared(Json answer, const std::string& stated_flag) {
  Json findings = Json::array();
  for (const Json& finding : answer.at("findings"))
    if (!of_unstated.contains(finding.at("code").get<std::string>()) &&
        !finding.at("message").get<std::string>().starts_with(stated_flag + ":"))
      findings.push_back(finding);
  answer["findings"] = findings;
  return answer;
}

// Returns how the answer to `stated` differs from `base`; empty if it does not.
std::string difference(const Json& base, const WhatIf& stated, const std::string& stated_flag,
                       Catalog& catalog, CollectiveCosts& costs) {
  try {
    const Json patch = Json::diff(compared(base, stated_flag),
                                  compared(answer_to(stated, catalog, costs), stated_flag));
    return patch.empty() ? "" : patch.front().dump();
  } catch (const Error& error) {
    return error.what();
  }
}

// Returns the keys that change the answer of a world, or are rejected in it, although set to their
// default.
std::map<std::string, std::string> differing_keys(const WhatIf& world, Catalog& catalog,
                                                  CollectiveCosts& costs) {
  std::map<std::string, std::string> differing;
  const Scenario unstated = resolve(world, catalog);
  const Json base = answer_to(world, catalog, costs);
  for (const auto& [key, default_of] : what_if_defaults()) {
    if (world.contains(key)) continue;
    const Stated value = default_of(unstated);
    if (!value) continue;
    WhatIf stated = world;
    if (const auto others = instead_of.find(key); others != instead_of.end())
      for (const std::string& other : others->second) stated.erase(other);
    stated[std::string(key)] = *value;
    const std::string how = difference(base, stated, flag(key).key, catalog, costs);
    if (!how.empty()) differing[std::string(key)] = fmt::format("={}: {}", *value, how);
  }
  return differing;
}

// Formats a TOML list; words that are not numbers are quoted.
std::string list_of(const std::vector<std::string>& words) {
  std::vector<std::string> elements;
  for (const std::string& word : words) {
    double number = 0;
    const char* const last = word.data() + word.size();
    const auto [end, status] = std::from_chars(word.data(), last, number);
    elements.push_back(status == std::errc{} && end == last ? word : "'" + word + "'");
  }
  return fmt::format("[{}]", fmt::join(elements, ", "));
}

// Collects every key of a description that has a value, with that value as `--set` accepts it.
void collect_values(const Table& table, const std::string& prefix, WhatIf& values) {
  for (const std::string& key : table.keys()) {
    const auto add = [&](const Table& of, const std::string& name) {
      const std::vector<std::string> words = of.words(name);
      values[prefix + key] = words.size() == 1 ? words.front() : list_of(words);
    };
    try {
      add(table, key);
    } catch (const Error&) {
      try {
        const Table below = table.table(key);
        if (below.has("value"))
          add(below, "value");
        else
          collect_values(below, prefix + key + ".", values);
      } catch (const Error&) {
        // a list of tables, whose elements have no dotted key
      }
    }
  }
}

// Adds the keys of a description. Keys below [device] and [model] omit the section name in `--set
// device.` and `--set model.`; only those of [model] can be set for a model.
void add_description(const std::string& of, const std::string& text, WhatIf& values) {
  const Table table = Table::parse(text, of);
  if (table.has(of)) collect_values(table.table(of), of + ".", values);
  if (of != "model") collect_values(table, of + ".", values);
  std::erase_if(values, [&](const auto& value) {
    const std::string_view key = value.first;
    return key.starts_with(of + "." + of + ".") || key == of + ".kind" || key == of + ".source";
  });
}

WhatIf description_values(const Scenario& scenario, Catalog& catalog) {
  WhatIf values;
  add_description("model", catalog.texts()->model(scenario.asked.at("model")), values);
  add_description("cluster", catalog.texts()->cluster(scenario.asked.at("cluster")), values);
  add_description("device", catalog.texts()->device(scenario.training.cluster->device), values);
  return values;
}

struct World {
  const char* name;
  WhatIf what_if;
};

WhatIf world_of(const char* model, const char* cluster, const char* gpus, const char* optimizer,
                WhatIf more) {
  more.insert({{"model", model},
               {"cluster", cluster},
               {"gpus", gpus},
               {"optimizer", optimizer},
               {"micro_batch", "4"},
               {"grad_accum", "8"},
               {"steps", "200"}});
  return more;
}

std::vector<World> worlds() {
  return {
      {"1-bit LAMB on Ethernet",
       world_of("bert-large", "paper-eth40-v100", "16", "onebit_lamb", {{"freeze_step", "50"}})},
      {"1-bit Adam over MPI that takes GPU memory",
       world_of("bert-large", "blog-qdr40-v100", "8", "onebit_adam", {{"freeze_step", "50"}})},
      {"LAMB in fp32",
       world_of("bert-large", "commodity-100gbe", "16", "lamb", {{"precision", "fp32"}})},
      {"0/1 Adam",
       world_of("bert-base", "dgx-a100-80g", "16", "zero_one_adam", {{"freeze_step", "50"}})},
      {"recomputed", world_of("bert-large", "dgx2-v100", "16", "lamb", {{"recompute", "full"}})},
      {"ZeRO 1, unfused attention", world_of("gpt2-xl", "dgx-a100-80g", "16", "adamw",
                                             {{"zero_stage", "1"}, {"attention", "unfused"}})},
      {"AdamW", world_of("gpt2", "hgx-h100-ndr", "8", "adamw", {{"precision", "bf16"}})},
      {"images", world_of("resnet50", "dgx1-v100", "8", "lamb", {})},
      {"ZeRO 2", world_of("gpt2-xl", "dgx-a100-80g", "16", "adamw", {{"zero_stage", "2"}})},
      {"ZeRO 3", world_of("llama2-7b", "hgx-h100-ndr", "16", "adamw", {{"zero_stage", "3"}})},
      {"Megatron",
       world_of("llama2-7b", "dgx-a100-80g", "32", "adamw",
                {{"framework", "megatron"}, {"tp", "4"}, {"pp", "2"}, {"zero_stage", "1"}})},
      {"torchtitan",
       world_of("llama2-7b", "hgx-h100-ndr", "16", "adamw",
                {{"framework", "torchtitan"}, {"zero_stage", "3"}, {"recompute", "full"}})},
      {"Colossal-AI", world_of("gpt2-xl", "commodity-100gbe", "16", "adamw",
                               {{"framework", "colossalai"}, {"pp", "4"}})},
      {"PyTorch", world_of("gpt2", "dgx-a100-80g", "16", "adamw", {{"framework", "pytorch"}})},
      {"experts", world_of("mixtral-8x7b", "hgx-h100-ndr", "32", "adamw",
                           {{"framework", "megatron"},
                            {"ep", "8"},
                            {"tp", "2"},
                            {"sequence_parallel", "true"},
                            {"zero_stage", "1"},
                            {"recompute", "full"},
                            {"micro_batch", "1"}})},
      {"GaLore", world_of("gpt2", "dgx-a100-80g", "8", "galore_adamw8bit", {})},
  };
}

void check_world(const std::string& name, const WhatIf& what_if, Catalog& catalog,
                 CollectiveCosts& costs) {
  for (const auto& [key, how] : differing_keys(what_if, catalog, costs))
    FAIL_CHECK(name << ": " << key << how);
}

void check_descriptions(const std::string& name, const WhatIf& what_if, Catalog& catalog,
                        CollectiveCosts& costs) {
  const Json base = answer_to(what_if, catalog, costs);
  for (const auto& [key, value] : description_values(resolve(what_if, catalog), catalog)) {
    WhatIf stated = what_if;
    stated[key] = value;
    INFO(name << ": " << key << "=" << value);
    CHECK(difference(base, stated, "--set " + key, catalog, costs) == "");
  }
}

TEST_CASE("stated defaults: every what-if key has a default, or is listed as one without") {
  for (const WhatIfKey& key : what_if_table()) {
    INFO(key.name);
    CHECK(what_if_defaults().contains(key.name) != keys_without_default().contains(key.name));
  }
  CHECK(what_if_defaults().size() + keys_without_default().size() == what_if_table().size());
}

TEST_CASE("stated defaults: stating one changes no number and no finding of the answer") {
  Catalog catalog;
  CollectiveCosts costs;
  for (const World& world : worlds()) check_world(world.name, world.what_if, catalog, costs);
}

// Returns the words that a run replaces by others without a change of the answer, an error or a
// finding.
std::vector<std::string> dropped_words(const WhatIf& world, Catalog& catalog,
                                       CollectiveCosts& costs) {
  std::vector<std::string> dropped;
  const Json base = answer_to(world, catalog, costs);
  for (const WhatIfKey& key : what_if_table()) {
    const auto value_of = what_if_defaults().find(key.name);
    if (world.contains(key.name) || value_of == what_if_defaults().end()) continue;
    // chooses a solution method, so no number may depend on it
    if (key.name == "symmetry") continue;
    for (const std::string& word : key.words) {
      WhatIf stated = world;
      stated[std::string(key.name)] = word;
      try {
        const Stated value = value_of->second(resolve(stated, catalog));
        if (value && *value != word && answer_to(stated, catalog, costs) == base)
          dropped.push_back(fmt::format("{}={} is {}", key.name, word, *value));
      } catch (const Error&) {
        continue;  // the error gives the reason
      }
    }
  }
  return dropped;
}

TEST_CASE("stated values: a given word is used, refused, or a finding says why it is not used") {
  Catalog catalog;
  CollectiveCosts costs;
  for (const World& world : worlds())
    for (const std::string& dropped : dropped_words(world.what_if, catalog, costs))
      FAIL_CHECK(world.name << ": " << dropped);
}

TEST_CASE("stated defaults: setting a key of a description to its own value changes nothing") {
  Catalog catalog;
  CollectiveCosts costs;
  for (const World& world : worlds())
    if (world.name == std::string_view("1-bit LAMB on Ethernet") ||
        world.name == std::string_view("experts"))
      check_descriptions(world.name, world.what_if, catalog, costs);
}

// Returns a question on two nodes, or on one if the cluster has no more.
WhatIf smallest_world(const std::string& model, const std::string& cluster,
                      const std::string& framework, Catalog& catalog) {
  const int per_node = load_cluster(cluster, {}).gpus_per_node;
  for (const int nodes : {2, 1}) {
    WhatIf world =
        world_of(model.c_str(), cluster.c_str(), std::to_string(nodes * per_node).c_str(), "adamw",
                 {{"framework", framework}});
    try {
      // A run that does not fit is skipped: remedies for memory keep a stated key, so they differ
      // by design.
      if (forecast_memory(resolve(world, catalog).training).fits) return world;
    } catch (const Error&) {
      continue;  // this framework or cluster does not support the model or the number of nodes
    }
  }
  return {};
}

// Tests each cluster with each framework and every seventh model, with a different first model each
// time. Takes minutes: run with `stated_defaults_gate_test "[.long]"`.
TEST_CASE("stated defaults: over all shipped models, clusters and frameworks", "[.long]") {
  Catalog catalog;
  const std::vector<std::string> models = model_presets();
  std::size_t number = 0;
  int worlds = 0;
  for (const std::string& cluster : cluster_names()) {
    CollectiveCosts costs;
    for (const std::string& framework : framework_names()) {
      for (std::size_t m = number++ % 7; m < models.size(); m += 7) {
        const WhatIf world = smallest_world(models[m], cluster, framework, catalog);
        if (world.empty()) continue;
        ++worlds;
        const std::string name = fmt::format("{} on {} by {}", models[m], cluster, framework);
        check_world(name, world, catalog, costs);
        if (worlds % 16 == 0) check_descriptions(name, world, catalog, costs);
      }
    }
  }
  CHECK(worlds > 300);
}

}  // namespace
}  // namespace lambcast
