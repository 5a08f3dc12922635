#include "experiments/world.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/optimizer/optimizer_model.h"
#include "models/shape/load.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

const std::string& one_of(const std::vector<std::string>& values, Dice& dice) {
  return values[dice.below(values.size())];
}

// GPUs, batch and run.
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
  if (!onebit && dice.one_in(3)) world["zero_stage"] = one_of({"0", "1", "2", "3"}, dice);
  if (dice.one_in(4)) world["overlap"] = one_of(words_of("overlap"), dice);
  if (!onebit && dice.one_in(6))
    world["exchange"] = one_of(
        {"all_reduce", "fp8", "int8", "int4", "powersgd:4", "topk:1%", "randomk:1%", "local:8"},
        dice);
}

void draw_layout(WhatIf& world, Dice& dice) {
  if (dice.one_in(2)) world["tp"] = one_of({"1", "2", "4", "8"}, dice);
  if (dice.one_in(2)) world["pp"] = one_of({"1", "2", "4", "8"}, dice);
  if (dice.one_in(5)) world["cp"] = one_of({"1", "2", "4"}, dice);
  if (world.contains("pp") && dice.one_in(2)) {
    world["pipeline_schedule"] = one_of(words_of("pipeline_schedule"), dice);
    if (dice.one_in(2)) world["interleave"] = one_of({"1", "2", "3"}, dice);
  }
  for (const char* key : {"sequence_parallel", "recompute", "framework", "attention", "fusion"})
    if (dice.one_in(4)) world[key] = one_of(words_of(key), dice);
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
