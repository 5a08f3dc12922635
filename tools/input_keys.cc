#include "tools/input_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "experiments/scenario/description_ledger.h"
#include "models/deepspeed/key_ledger.h"
#include "models/deepspeed/known_keys.h"
#include "models/huggingface/costless_keys.h"
#include "models/launchers/trainers.h"
#include "models/megatron/costless_arguments.h"
#include "models/megatron/known_arguments.h"
#include "models/torchtitan/known_keys.h"
#include "validate/importers/log_ledger.h"

namespace lambcast {
namespace {

// Counts the keys of one format.
struct Count {
  std::size_t applied = 0, named = 0;
  std::vector<std::pair<std::string_view, std::size_t>> costless = {};  // by reason

  void add(Treatment treatment, std::string_view reason, std::size_t keys) {
    if (treatment != Treatment::costless)
      (treatment == Treatment::applied ? applied : named) += keys;
    else if (const auto known =
                 std::ranges::find(costless, reason, [](auto& at) { return at.first; });
             known != costless.end())
      known->second += keys;
    else
      costless.emplace_back(reason, keys);
  }
  void add(std::span<const KeyNames> tables) {
    for (const KeyNames& keys : tables)
      add(keys.treatment, keys.reason, 1 + std::ranges::count(keys.names, '|'));
  }
};

std::size_t words(std::string_view names) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < names.size(); ++i)
    count += names[i] != ' ' && (i == 0 || names[i - 1] == ' ') ? 1 : 0;
  return count;
}

Count of_deepspeed() {
  using enum deepspeed::Bearing;
  Count count;
  for (const auto table : {deepspeed::top_level_keys(), deepspeed::zero_keys()})
    for (const auto& [name, bearing] : table)
      count.add(bearing == silent                       ? Treatment::costless
                : bearing == read || bearing == stage_3 ? Treatment::applied
                                                        : Treatment::named,
                deepspeed::silent_reason(), 1);
  return count;
}

Count of_megatron() {
  Count count;
  count.named = megatron::named_arguments().size() + words(megatron::unmodelled_names());
  for (const std::string& name : megatron::known_arguments())
    count.applied += megatron::bears_on_cost(name) ? 1 : 0;
  for (const auto& [reason, names] : megatron::costless_groups())
    count.add(Treatment::costless, reason, words(names));
  return count;
}

Count of_torchtitan() {
  Count count{0, torchtitan::named_keys().size()};
  const std::size_t values = words(torchtitan::files_and_values());
  for (const auto& [section, keys] : torchtitan::known_keys()) count.applied += keys.size();
  count.applied -= values + count.named;
  count.add(Treatment::costless, "a file, a sample or a value in formulas", values);
  count.add(Treatment::costless, "a section outside a step", torchtitan::silent_sections().size());
  return count;
}

template <typename Groups>
Count of_groups(const Groups& groups) {
  Count count;
  for (const auto& [reason, keys] : groups) count.add(Treatment::costless, reason, words(keys));
  return count;
}

Count of_tables(std::span<const KeyNames> tables) {
  Count count;
  count.add(tables);
  return count;
}

}  // namespace

std::string input_keys_summary() {
  std::string out;
  for (const auto& [format, count] :
       {std::pair{"DeepSpeed JSON", of_deepspeed()},
        {"Megatron-LM, Megatron-DeepSpeed", of_megatron()},
        {"torchtitan", of_torchtitan()},
        {"config.json, next to the sizes of each class", of_groups(huggingface::costless_groups())},
        {"LLaMA-Factory, axolotl, next to what amounts to flags",
         of_groups(launchers::costless_trainer_keys())},
        {"NCCL's XML, topo -m, Slurm", of_tables(topology_keys())},
        {"logs of collectives", of_tables(validate::collective_keys())},
        {"logs of training", of_tables(validate::step_keys())}}) {
    out += fmt::format("{}: {} applied, {} named\n", format, count.applied, count.named);
    for (const auto& [reason, keys] : count.costless)
      out += fmt::format("  {:>3} without cost: {}\n", keys, reason);
  }
  return out;
}

}  // namespace lambcast
