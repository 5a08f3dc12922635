#include "experiments/sweep/sweep_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "embedded/study_files.h"
#include "experiments/output/forecast_output.h"
#include "experiments/scenario/hints.h"
#include "experiments/scenario/run_length.h"
#include "experiments/sweep/sweep_command.h"
#include "experiments/sweep/sweep_file.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/fnv.h"
#include "sim/base/table.h"

namespace lambcast {
namespace {

// Returns the values of one grid entry: a list, one value, or a scan.
std::vector<std::string> entry_values(const Table& table, const std::string& key) {
  const Where where = table.where(key);
  if (const auto scan = table.find_text(key); scan && is_scan(*scan))
    return expand_scan(*scan, where);
  std::vector<std::string> values = table.words(key);
  if (values.empty()) fail_input(where, "is empty");
  refuse_twice(values, where);
  return values;
}

void check_key(const Where& where, const std::string& key) {
  const auto& known = what_if_keys();
  if (is_of_description(key)) return;
  if (std::find(known.begin(), known.end(), key) == known.end())
    fail_unknown_key(where, key, known);
}

// A part of the file: the shared keys of its points, the varied keys, and the variants.
struct Part {
  WhatIf base;
  std::vector<Axis> grid;
  std::vector<WhatIf> variants;
};

WhatIf read_what_if(const Table& table) {
  WhatIf what_if;
  for (const std::string& key : table.keys()) {
    check_key(table.where(key), key);
    const std::vector<std::string> values = table.words(key);
    if (values.size() != 1)
      fail_input(table.where(key), "takes one value here; lists go to [grid]");
    what_if[key] = values.front();
  }
  return what_if;
}

void set_axis(std::vector<Axis>& grid, const Axis& axis) {
  for (Axis& present : grid) {
    if (present.first != axis.first) continue;
    present.second = axis.second;
    return;
  }
  grid.push_back(axis);
}

// Adds the keys of `table` to `part`.
void read_part(const Table& table, Part& part) {
  for (const auto& [key, value] : read_what_if(table.table("base"))) part.base[key] = value;
  const Table grid = table.table("grid");
  for (const std::string& key : grid.keys()) {
    check_key(grid.where(key), key);
    set_axis(part.grid, {key, entry_values(grid, key)});
  }
  const auto variants = table.tables("variant");
  if (!variants.empty()) part.variants.clear();
  for (const Table& variant : variants) part.variants.push_back(read_what_if(variant));
}

// The points of a part, by variant.
struct NamedBlock {
  std::string name;  // for notes: "part 2", "part 2, variant 1"
  PointBlock block;
};

void add_blocks(const Part& part, const std::string& name, std::vector<NamedBlock>& blocks) {
  const std::vector<WhatIf> variants =
      part.variants.empty() ? std::vector<WhatIf>{{}} : part.variants;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    PointBlock block{part.base, {}};
    for (const auto& [key, value] : variants[i]) block.fixed[key] = value;
    for (const Axis& axis : part.grid) {
      if (variants[i].contains(axis.first)) continue;
      block.fixed.erase(axis.first);
      block.axes.push_back(axis);
    }
    blocks.push_back({part.variants.empty() ? name : fmt::format("{}, variant {}", name, i + 1),
                      std::move(block)});
  }
}

std::string without_spaces(std::string text) {
  std::erase(text, ' ');
  return text;
}

// Returns the other keys that give the length of a run (steps, samples, tokens): a flag's key
// replaces the file's.
std::vector<std::string> other_lengths(const std::string& key) {
  if (!is_length(key)) return {};
  std::vector<std::string> others(length_keys.begin(), length_keys.end());
  std::erase(others, key);
  return others;
}

// Replaces the values of `key`, and of the keys that state the same number.
void replace(PointBlock& block, const Axis& axis) {
  for (const std::string& other : other_lengths(axis.first)) {
    std::erase_if(block.axes, [&](const Axis& own) { return own.first == other; });
    block.fixed.erase(other);
  }
  block.fixed.erase(axis.first);
  set_axis(block.axes, axis);
}

// Returns the listed values that no part has, if some part has a list to choose from.
std::string new_values(const std::vector<NamedBlock>& blocks, const Axis& axis,
                       const std::set<std::string>& known) {
  const bool lists = std::ranges::any_of(
      blocks, [&](const NamedBlock& part) { return part.block.values(axis.first).size() > 1; });
  std::string added;
  for (const std::string& value : axis.second)
    if (lists && !known.contains(without_spaces(value)))
      added += (added.empty() ? "" : ",") + value;
  return added;
}

// Returns the listed numbers that a part with its own list does not have, so that its grid is
// smaller than that of other parts. Words (`optimizer=lamb,onebit_lamb`) are not counted, since
// they are meant to select the parts made for them.
std::string left_to_others(const std::set<std::string>& own, const std::vector<std::string>& taken,
                           const std::vector<std::string>& listed) {
  std::string rest;
  for (const std::string& value : listed)
    if (own.size() > 1 && value.front() >= '0' && value.front() <= '9' &&
        std::ranges::find(taken, value) == taken.end())
      rest += (rest.empty() ? "" : ",") + value;
  return rest;
}

// Applies an axis of a flag to the blocks by the rule in sweep_plan.h.
void choose(std::vector<NamedBlock>& blocks, const Axis& axis, std::vector<std::string>& notes) {
  const std::string& key = axis.first;
  const auto& listed = axis.second;
  const auto own_values = [&](const PointBlock& block) {
    std::set<std::string> values;
    for (const std::string& value : block.values(key)) values.insert(without_spaces(value));
    return values;
  };
  const auto has_key = [&](const NamedBlock& part) {
    const auto said = [&](const std::string& length) { return !part.block.values(length).empty(); };
    return said(key) || std::ranges::any_of(other_lengths(key), said);
  };
  const bool nowhere = std::none_of(blocks.begin(), blocks.end(), has_key);
  std::set<std::string> known;
  for (const NamedBlock& part : blocks) known.merge(own_values(part.block));
  if (const std::string added = new_values(blocks, axis, known); !added.empty())
    notes.push_back(fmt::format("{}={} is in no list of the file: every part with {} runs it", key,
                                added, key));
  std::vector<NamedBlock> kept;
  for (NamedBlock& part : blocks) {
    if (nowhere || has_key(part)) {
      const std::set<std::string> own = own_values(part.block);
      Axis of_part{key, {}};
      for (const std::string& value : listed)
        if (own.contains(without_spaces(value)) || !known.contains(without_spaces(value)))
          of_part.second.push_back(value);
      if (of_part.second.empty()) {
        notes.push_back(fmt::format("{} is left out: it has none of {}={}", part.name, key,
                                    fmt::join(listed, ",")));
        continue;
      }
      if (const std::string rest = left_to_others(own, of_part.second, listed); !rest.empty())
        notes.push_back(fmt::format("{} runs {}={} alone: {} {} in lists of other parts", part.name,
                                    key, fmt::join(of_part.second, ","), rest,
                                    rest.find(',') == std::string::npos ? "is" : "are"));
      replace(part.block, of_part);
    }
    kept.push_back(std::move(part));
  }
  blocks = std::move(kept);
}

}  // namespace

std::string study_text(std::string_view name) {
  for (const EmbeddedFile& file : study_files())
    if (file.name == fmt::format("{}/sweep.toml", name)) return std::string(file.text);
  return {};
}

std::string sweep_text(const std::string& name) {
  if (std::string study = study_text(name); !study.empty()) return study;
  if (name != "-" && !std::filesystem::exists(name))
    fail_input({name, 0, {}}, "does not exist",
               "a sweep file, - for stdin, or a study that ships: bert_large, exchanges");
  return read_file(name);
}

SweepPlan plan_sweep(std::string_view text, const std::string& file,
                     const std::vector<Axis>& axes) {
  const Table root = Table::parse(text, file);
  SweepPlan plan;
  plan.text = text;
  plan.flags = axes;
  plan.name = root.get_or<std::string>("name", "sweep");
  plan.description = root.get_or<std::string>("description", "");
  Part common;
  read_part(root, common);
  std::vector<NamedBlock> blocks;
  const std::vector<Table> parts = root.tables("part");
  for (std::size_t i = 0; i < parts.size(); ++i) {
    Part part = common;
    read_part(parts[i], part);
    add_blocks(part, fmt::format("part {}", i + 1), blocks);
  }
  if (parts.empty()) add_blocks(common, "the sweep", blocks);
  root.finish();
  std::string hashed(text);
  for (const Axis& axis : axes) {
    check_key({"", 0, "--scan/--list"}, axis.first);
    hashed += fmt::format("\n{}={}", axis.first, fmt::join(axis.second, ","));
    choose(blocks, axis, plan.notes);
  }
  for (NamedBlock& part : blocks) plan.points.add(std::move(part.block));
  plan.text_hash = fnv1a64(hashed);
  return plan;
}

SweepPlan plan_named_sweep(const std::string& name, const WhatIf& what_if, std::vector<Axis> axes) {
  for (const auto& [key, value] : what_if) axes.push_back({key, {value}});
  const std::string text = sweep_text(name);
  if (text.find_first_not_of(" \t\r\n") == std::string::npos)
    fail_input({name == "-" ? "stdin" : name, 0, {}}, "is empty", "a sweep file");
  SweepPlan plan = plan_sweep(text, name, axes);
  plan.command = sweep_command(name, axes);
  return plan;
}

SweepPlan plan_sweep_of_flags(const WhatIf& what_if, const std::vector<Axis>& axes) {
  constexpr std::string_view name = "the flags", grid = ": grid.";
  try {
    SweepPlan plan = plan_sweep(sweep_file(what_if, axes), std::string(name), {});
    plan.command = sweep_command(what_if, axes);
    return plan;
  } catch (const Error& error) {
    // Removes file and line, since the user did not write this file.
    const std::string said = error.what();
    const std::size_t at = said.find(grid);
    if (!said.starts_with(name) || at == std::string::npos) throw;
    throw Error(error.code(), fmt::format("--list or --scan {}", said.substr(at + grid.size())));
  }
}

}  // namespace lambcast
