#include "experiments/properties/world.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "models/optimizer/optimizer_model.h"
#include "models/shape/load.h"
#include "models/training/plan/exchange.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

// Returns whether to draw from all values, including those that the tables reject.
bool regardless(Dice& dice) { return dice.one_in(6); }

const std::string& one_of(const std::vector<std::string>& values, Dice& dice) {
  return values[dice.below(values.size())];
}

// Draws GPUs, batch and length of the run.
void draw_sizes(WhatIf& world, Dice& dice) {
  static const std::vector<std::string> gpus{"1",  "2",  "3",  "4",  "6",   "8",   "12",  "16",
                                             "24", "32", "48", "64", "100", "128", "256", "1024"};
  world["gpus"] = one_of(gpus, dice);
  world["micro_batch"] = one_of({"1", "2", "3", "4", "8", "16", "32"}, dice);
  world["grad_accum"] = one_of({"1", "1", "2", "4", "7", "16"}, dice);
  world["steps"] = one_of({"100", "1000", "7500"}, dice);
  if (dice.one_in(4)) world["seq_len"] = one_of({"128", "384", "512", "1024", "4096"}, dice);
}

void draw_optimizer(WhatIf& world, Dice& dice) {
  world["optimizer"] = one_of(optimizer_names(), dice);
  const bool onebit = world["optimizer"].starts_with("onebit_");
  if (onebit) world["freeze_step"] = one_of({"2", "10", "16.7%", "30%"}, dice);
  if (onebit || world["optimizer"] == "zero_one_adam") {
    world["backend"] = one_of(words_of("backend"), dice);
    if (dice.one_in(3)) world["kernels"] = one_of(words_of("kernels"), dice);
  }
  if (dice.one_in(2))
    world["precision"] = one_of({"fp16", "bf16", "bf16", "fp32", "fp8", "mxfp8"}, dice);
}

// Returns the value of a key in a world; empty if it is left at its default.
std::string_view setting(const WhatIf& world, const std::string& key) {
  const auto found = world.find(key);
  return found == world.end() ? std::string_view() : std::string_view(found->second);
}

const OptimizerModel& optimizer_of(const WhatIf& world) {
  const auto models = optimizer_models();
  return **std::find_if(models.begin(), models.end(), [&](const OptimizerModel* each) {
    return each->name == setting(world, "optimizer");
  });
}

// Returns whether DeepSpeed's ZeRO accepts the optimizer: DeepSpeed's own plain optimizers, except
// LAMB.
bool shared_by_deepspeed(const OptimizerModel& optimizer) {
  return optimizer.of_deepspeed && !optimizer.onebit && !optimizer.is_lamb;
}

bool shared_by_others(const OptimizerModel& optimizer) {
  return !optimizer.onebit && optimizer.type != OptimizerType::galore_adamw8bit;
}

// Returns the ZeRO stages that the optimizer, framework and layout of a world accept.
std::vector<std::string> stages_of(const WhatIf& world) {
  const std::string_view framework = setting(world, "framework");
  const bool deepspeed = framework.empty() || framework == "deepspeed";
  const OptimizerModel& optimizer = optimizer_of(world);
  const std::vector<std::string> share_nothing{"pytorch", "nvidia", "tensorflow", "bagua"};
  if (std::ranges::find(share_nothing, framework) != share_nothing.end() ||
      !(deepspeed ? shared_by_deepspeed(optimizer) : shared_by_others(optimizer)))
    return {"0"};
  const auto divided = [&](const char* key) { return setting(world, key) > "1"; };
  if (divided("pp") && (deepspeed || framework == "colossalai")) return {"0", "1"};
  if ((divided("tp") && deepspeed) || framework == "colossalai") return {"0", "1", "2"};
  return {"0", "1", "2", "3"};
}

// Draws the ZeRO stage and the overlap of communication.
void draw_sharing(WhatIf& world, Dice& dice) {
  if (dice.one_in(3)) {
    const OptimizerModel& optimizer = optimizer_of(world);
    if (!shared_by_deepspeed(optimizer) && shared_by_others(optimizer) && dice.one_in(2))
      world.try_emplace("framework", one_of({"megatron", "torchtitan", "colossalai"}, dice));
    world["zero_stage"] = one_of(
        regardless(dice) ? std::vector<std::string>{"0", "1", "2", "3"} : stages_of(world), dice);
  }
  if (!dice.one_in(4)) return;
  const std::string_view stage = setting(world, "zero_stage");
  const bool shares = !stage.empty() && stage != "0";
  const std::string& overlap = one_of(words_of("overlap"), dice);
  if (overlap != (shares ? "ddp" : "zero") || regardless(dice)) world["overlap"] = overlap;
}

void draw_exchange(WhatIf& world, Dice& dice) {
  if (setting(world, "optimizer").starts_with("onebit_") || !dice.one_in(6)) return;
  const std::string exchange = one_of({"all_reduce",
                                       "fp16",
                                       "bf16",
                                       "onebit",
                                       "fp8",
                                       "fp8:e5m2",
                                       "fp8:owed",
                                       "int8",
                                       "int8:owed",
                                       "int4",
                                       "int4:owed",
                                       "qgz",
                                       "qgz:int8",
                                       "loco",
                                       "loco:int8",
                                       "sdp4bit",
                                       "powersgd:4",
                                       "powersgd:4:2",
                                       "topk:1%",
                                       "randomk:1%",
                                       "local:8",
                                       "localsgd:8",
                                       "neighbours:ring",
                                       "neighbours:exponential",
                                       "int8 / two-level / overlapped",
                                       "onebit / two-level",
                                       "onebit / sharded",
                                       "topk:1% / sharded / overlapped",
                                       "int4+ef / every 8 / nodes",
                                       "onebit / two-level / every 4 / nodes",
                                       "powersgd:4 / overlapped",
                                       "bf16 / every 8 / nodes",
                                       "neighbours:ring / two-level / overlapped",
                                       "chunktopk:64 / every 8 / nodes",
                                       "dctsign:32",
                                       "lossless:67%",
                                       "topk:1% / store",
                                       "int8 / relay",
                                       "int4+ef / every 8 / nodes / fragments 2 / overlap 2",
                                       "local:8 / fragments 4 / overlap 1",
                                       "powersgd:4 / start 2",
                                       "localsgd:4 / nodes / start 3"},
                                      dice);
  // Skips most exchanges that the ZeRO stage rejects.
  const std::string stage(setting(world, "zero_stage"));
  if (refused_with_zero(parse_exchange(exchange, {}), stage.empty() ? 0 : std::stoi(stage))
          .empty() ||
      regardless(dice))
    world["exchange"] = exchange;
}

void draw_layout(WhatIf& world, Dice& dice) {
  if (dice.one_in(2)) world["tp"] = one_of({"1", "2", "4", "8"}, dice);
  if (dice.one_in(2)) world["pp"] = one_of({"1", "2", "4", "8"}, dice);
  if (dice.one_in(5)) world["cp"] = one_of({"1", "2", "4"}, dice);
  if (world.contains("pp") && dice.one_in(2)) {
    world["pipeline_schedule"] = one_of(words_of("pipeline_schedule"), dice);
    if (dice.one_in(2)) world["interleave"] = one_of({"1", "2", "3"}, dice);
  }
  int copies = 1;
  for (const char* key : {"tp", "pp", "cp"})
    if (world.contains(key)) copies *= std::stoi(world[key]);
  if (!regardless(dice)) world["gpus"] = std::to_string(std::lcm(std::stoi(world["gpus"]), copies));
  for (const char* key : {"sequence_parallel", "recompute", "framework", "attention", "fusion"})
    if (dice.one_in(4)) world[key] = one_of(words_of(key), dice);
}

// Returns a value for a key without a list of words that is not drawn above. Excluded are keys that
// name files and keys that state the same as others.
const WhatIf::mapped_type& value_of(std::string_view key, Dice& dice) {
  static const std::map<std::string_view, std::vector<std::string>> values{
      {"capacity_factor", {"0", "1", "1.25"}},
      {"deepspeed_version", {"0.14.4", "0.15.4", "0.17.6"}},
      {"ep", {"1", "2", "4", "8"}},
      {"etp", {"1", "2"}},
      {"galore_min_8bit_size", {"1", "4096", "1000000"}},
      {"gradient_clipping", {"0", "1"}},
      {"weight_decay", {"0", "0.01", "0.1"}},
      {"galore_rank", {"16", "128", "1024"}},
      {"galore_update_gap", {"10", "200"}},
      {"precondition_frequency", {"1", "10", "1000"}},
      {"gpus_per_node", {"1", "2", "4"}},
      {"gradient_bucket", {"1000000", "500000000"}},
      {"imbalance", {"1", "1.5", "4"}},
      {"lora_rank", {"1", "16", "64"}},
      {"local_step_clipper", {"1", "4", "16"}},
      {"local_step_scaler", {"10", "32678"}},
      {"offload_activations", {"blocks:1", "checkpoints", "core_attn+attn_proj", "mlp_norm:0.5"}},
      {"order", {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"}},
      {"rampup_batch_size", {"32:32:100000"}},
      {"secondary_ranks", {"2", "8"}},
      {"shard_handling_us", {"0", "20"}},
      {"shard_ranks", {"1", "2", "8"}},
      {"shard_groups", {"1", "2"}},
      {"state_types", {"bf16:bf16:rest", "fp8:fp16:fp16", "fp32:fp32:fp32"}},
      {"steps_done", {"1", "50"}},
      {"var_update_scaler", {"1", "16"}},
      {"versions", {"torch=2.1,nccl=2.18,deepspeed=0.15.4"}},
  };
  static const std::string none;
  const auto row = values.find(key);
  return row == values.end() ? none : one_of(row->second, dice);
}

// Sometimes draws any key of the table, so that new rows are drawn too.
void draw_rest(WhatIf& world, Dice& dice) {
  const auto table = what_if_table();
  for (int left = 2; left > 0 && dice.one_in(4); --left) {
    const WhatIfKey& key = table[dice.below(table.size())];
    const std::string& value =
        key.words.empty() ? value_of(key.name, dice) : one_of(key.words, dice);
    if (!value.empty()) world.try_emplace(std::string(key.name), value);
  }
}

}  // namespace

std::uint64_t Dice::next() {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

WhatIf draw_world(std::uint64_t seed) {
  static const std::vector<std::string> models = model_presets(), clusters = cluster_names();
  Dice dice{seed};
  WhatIf world{{"model", one_of(models, dice)}, {"cluster", one_of(clusters, dice)}};
  draw_sizes(world, dice);
  draw_optimizer(world, dice);
  if (dice.one_in(3)) draw_layout(world, dice);
  draw_sharing(world, dice);
  draw_exchange(world, dice);
  draw_rest(world, dice);
  if (dice.one_in(3)) world["network"] = "flow";
  if (dice.one_in(6)) {
    world["cluster.fabric.kind"] = "fat-tree";
    world["cluster.fabric.nodes_per_leaf"] = one_of({"2", "4"}, dice);
    world["cluster.fabric.oversubscription"] = one_of({"1.0", "2.0", "4.0"}, dice);
  }
  return world;
}

std::string in_flags(const WhatIf& world) {
  std::string flags;
  for (const auto& [key, value] : world) {
    std::string name = key;
    if (name.find('.') != std::string::npos) {
      flags += fmt::format(" --set {}={}", name, value);
      continue;
    }
    std::replace(name.begin(), name.end(), '_', '-');
    flags += fmt::format(" --{} {}", name, value);
  }
  return "simulate" + flags;
}

}  // namespace lambcast
