// Many what-ifs from one file: every combination of a grid, in a fixed order.
//
//   name = "..."                       description = "..."
//   [base]                             shared by all points: keys of WhatIf
//   [grid]                             every combination; lists, or scans "8..256", "8:256:x2",
//                                      "0:100:25"
//   [[variant]]                        (optional) each crossed with the grid; its keys win
//   [[part]]                           (optional) several sweeps in one: part.base, part.grid,
//                                      part.variant, in addition to or instead of those above
//
// Keys with dots ("cluster.nic.bandwidth") are quoted. The points and their order follow from the
// file and the axes of `--scan` and `--list` alone.
//
// A flag's axis selects among the values in the file. Each part (and each of its variants, if any)
// keeps those of the listed values that it has in base, grid or variant. A part left with none is
// dropped. A part left with fewer numbers than listed gets a note. A part without the key is
// unchanged. So `--list optimizer=lamb,onebit_lamb` runs each optimizer in the parts made for it. A
// listed value that no part has is new: it joins every part that has the key, with a note if they
// have lists. A key that no part has joins all parts. Values that differ only in spaces are equal
// ("1 Gbit/s", "1Gbit/s").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/sweep/sweep_points.h"

namespace lambcast {

// Returns the sweep file of a shipped study by the name of its folder, or an empty text.
std::string study_text(std::string_view name);
// Returns the text of a study, of a file, or of stdin ("-"). Throws Error (usage) if there is none.
std::string sweep_text(const std::string& name);

struct SweepPlan {
  std::string name;
  std::string description;
  std::string text;         // text of the file
  std::vector<Axis> flags;  // axes of `--scan` and `--list`
  std::string text_hash;    // hash of text and flags
  std::string command;      // for the manifest (sweep_command.h), if planned from flags
  SweepPoints points;
  std::optional<std::int64_t> common_steps{};  // length of every run, if none is given
  // messages to the user on values that the flags left out
  std::vector<std::string> notes;
};

// Plans a sweep. Throws Error for an invalid sweep file, and for more than ten million points.
SweepPlan plan_sweep(std::string_view text, const std::string& file, const std::vector<Axis>& axes);

// Plans the sweep_text() of `name`, narrowed by flags. Flags of what-ifs are axes with one value.
SweepPlan plan_named_sweep(const std::string& name, const WhatIf& what_if, std::vector<Axis> axes);
// Plans a sweep given only by flags, by way of its file (sweep_file.h).
SweepPlan plan_sweep_of_flags(const WhatIf& what_if, const std::vector<Axis>& axes);

}  // namespace lambcast
