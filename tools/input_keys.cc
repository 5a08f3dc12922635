#include "tools/input_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "experiments/scenario/description_ledger.h"
#include "models/deepspeed/key_ledger.h"
#include "models/deepspeed/known_keys.h"
#include "models/huggingface/config.h"
#include "models/launchers/launcher_file.h"
#include "models/megatron/costless_arguments.h"
#include "models/megatron/known_arguments.h"
#include "models/torchtitan/known_keys.h"
#include "validate/importers/log_ledger.h"

namespace lambcast {
namespace {

// The keys of one format, by effect.
struct Keys {
  std::set<std::string> applied, named, refused = {};
  std::vector<std::pair<std::string_view, std::vector<std::string>>> costless = {};  // by reason

  void add(Treatment treatment, std::string_view reason, std::string_view key) {
    if (treatment != Treatment::costless)
      (treatment == Treatment::applied ? applied : named).emplace(key);
    else if (const auto known =
                 std::ranges::find(costless, reason, [](auto& at) { return at.first; });
             known != costless.end())
      known->second.emplace_back(key);
    else
      costless.emplace_back(reason, std::vector{std::string(key)});
  }
  void add(std::span<const CostlessKeys> groups) {
    for (const CostlessKeys& of : groups)
      for_each_name(of.keys,
                    [&](std::string_view key) { add(Treatment::costless, of.reason, key); });
  }
};

Keys of_deepspeed() {
  using enum deepspeed::Bearing;
  Keys keys;
  for (const auto table : {deepspeed::top_level_keys(), deepspeed::zero_keys()})
    for (const auto& [name, bearing] : table)
      keys.add(bearing == silent                       ? Treatment::costless
               : bearing == read || bearing == stage_3 ? Treatment::applied
                                                       : Treatment::named,
               deepspeed::silent_reason(), name);
  return keys;
}

Keys of_megatron() {
  Keys keys;
  for (const auto& argument : megatron::named_arguments()) keys.named.emplace(argument.name);
  for_each_name(megatron::unmodelled_names(),
                [&](std::string_view name) { keys.named.emplace(name); });
  for (const std::string& name : megatron::known_arguments())
    if (megatron::bears_on_cost(name)) keys.applied.insert(name);
  for (const std::string_view name : megatron::refused_arguments())
    keys.refused.insert(keys.applied.extract(std::string(name)));
  keys.add(megatron::costless_groups());
  return keys;
}

Keys of_torchtitan() {
  Keys keys;
  for (const auto& named : torchtitan::named_keys())
    keys.named.insert(fmt::format("{}.{}", named.section, named.key));
  const std::string_view values = torchtitan::files_and_values();
  for (const auto& [section, names] : torchtitan::known_keys())
    for (const std::string& name : names)
      if (const std::string key = fmt::format("{}.{}", section, name); holds_name(values, name))
        keys.add(Treatment::costless, "a file, a sample or a value in formulas", key);
      else if (!keys.named.contains(key))
        keys.applied.insert(key);
  for (const std::string& section : torchtitan::silent_sections())
    keys.add(Treatment::costless, "a section outside a step", section);
  return keys;
}

Keys of_format(const KeysOfFormat& format) {
  Keys keys{format.applied, format.named};
  keys.add(format.costless);
  return keys;
}

Keys of_tables(std::span<const KeyNames> tables) {
  Keys keys;
  for (const KeyNames& of : tables)
    for_each_name(
        of.names, [&](std::string_view key) { keys.add(of.treatment, of.reason, key); }, '|');
  return keys;
}

std::vector<std::pair<std::string, Keys>> all_formats() {
  std::vector<std::pair<std::string, Keys>> formats{
      {"DeepSpeed JSON", of_deepspeed()},
      {"Megatron-LM, Megatron-DeepSpeed", of_megatron()},
      {"torchtitan", of_torchtitan()},
      {"config.json", of_format(huggingface::keys_read())}};
  for (const auto& [program, keys] : launchers::keys_by_program())
    formats.emplace_back(program, of_format(keys));
  formats.emplace_back("NCCL's XML and log, topo -m, Slurm", of_tables(topology_keys()));
  formats.emplace_back("logs of collectives", of_tables(validate::collective_keys()));
  formats.emplace_back("logs of training", of_tables(validate::step_keys()));
  return formats;
}

// Returns names in lines of at most 100 characters below a title.
template <typename Names>
std::string lines_of_names(std::string_view title, const Names& names) {
  std::string out = fmt::format("  {}:", title), line = "   ";
  for (const std::string& name : names) {
    if (line.size() + 1 + name.size() > 100) out += "\n" + std::exchange(line, "   ");
    line += " " + name;
  }
  return names.empty() ? "" : out + "\n" + line + "\n";
}

}  // namespace

std::string input_keys_summary() {
  std::string out;
  for (const auto& [format, keys] : all_formats()) {
    std::size_t costless = 0;
    for (const auto& [reason, names] : keys.costless) costless += names.size();
    out += fmt::format(
        "{}: {} applied, {} without cost, {} named{}\n", format, keys.applied.size(), costless,
        keys.named.empty() ? "any other" : fmt::format("{}", keys.named.size()),
        keys.refused.empty() ? "" : fmt::format(", {} refused", keys.refused.size()));
  }
  return out;
}

std::string input_keys_list() {
  std::string out;
  for (const auto& [format, keys] : all_formats()) {
    out += fmt::format("{}\n", format) + lines_of_names("applied", keys.applied) +
           lines_of_names("named", keys.named) + lines_of_names("refused", keys.refused);
    for (const auto& [reason, names] : keys.costless)
      out += lines_of_names(fmt::format("without cost: {}", reason), names);
  }
  return out;
}

}  // namespace lambcast
