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

// The sweep file of a study that ships inside (its folder's name), or empty.
std::string study_text(std::string_view name);
// The text of a study, of a file, or with "-" of stdin. Throws Error (usage) where there is none.
std::string sweep_text(const std::string& name);

struct SweepPlan {
  std::string name;
  std::string description;
  std::string text;         // of the file
  std::vector<Axis> flags;  // what `--scan` and `--list` said
  std::string text_hash;    // of both
  std::string command;      // for the manifest (sweep_command.h), where it was planned from flags
  SweepPoints points;
  std::optional<std::int64_t> common_steps{};  // of every run, if no length is given
  std::vector<std::string> notes;              // what the flags left out, for people
};

// Throws Error for what is not a sweep, and for more than ten million points.
SweepPlan plan_sweep(std::string_view text, const std::string& file, const std::vector<Axis>& axes);

// The sweep_text() of `name` narrowed by flags: those of what-ifs are axes of one value.
SweepPlan plan_named_sweep(const std::string& name, const WhatIf& what_if, std::vector<Axis> axes);
// Flags alone, through the file that they amount to (sweep_file.h).
SweepPlan plan_sweep_of_flags(const WhatIf& what_if, const std::vector<Axis>& axes);

}  // namespace lambcast
