#include "experiments/report/palette.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace lambcast::report {
namespace {

struct Known {
  std::string_view name, display;
  Look look;
};

constexpr std::array<Known, 5> known_optimizers = {
    {{"lamb", "LAMB", {"#E69F00", 4, 1.5}},
     {"onebit_lamb", "1-bit LAMB", {"#D55E00", 5, 1.5}},
     {"adam", "Adam", {"#56B4E9", 6, 0.9}},
     {"onebit_adam", "1-bit Adam", {"#0072B2", 7, 0.9}},
     {"zero_one_adam", "0/1 Adam", {"#009E73", 9}}}};
// With looks by their place.
constexpr std::array<std::pair<std::string_view, std::string_view>, 7> names_alone = {
    {{"adamw", "AdamW"},
     {"lars", "LARS"},
     {"lion", "Lion"},
     {"distributed_lamb", "distributed LAMB"},
     {"adafactor", "Adafactor"},
     {"came", "CAME"},
     {"galore_adamw8bit", "GaLore with 8-bit AdamW"}}};

}  // namespace

std::string display_name(std::string_view optimizer) {
  for (const Known& known : known_optimizers) {
    if (known.name == optimizer) return std::string(known.display);
  }
  for (const auto& [name, display] : names_alone)
    if (name == optimizer) return std::string(display);
  if (const auto with = optimizer.find(" with "); with != std::string_view::npos)
    return display_name(optimizer.substr(0, with)) + std::string(optimizer.substr(with));
  return std::string(optimizer);
}

Look optimizer_look(std::string_view optimizer, std::size_t index) {
  for (const Known& known : known_optimizers) {
    if (known.name == optimizer) return known.look;
  }
  return series_look(index);
}

std::string_view adjective_of(StepKind kind) {
  constexpr std::array<std::string_view, step_kinds.size()> adjectives{"", "warm-up", "compressed",
                                                                       "silent", "refresh"};
  const auto place = std::find(step_kinds.begin(), step_kinds.end(), kind);
  LAMBCAST_CHECK(place != step_kinds.end(), "{} is told of no step", name_of(kind));
  return adjectives[static_cast<std::size_t>(place - step_kinds.begin())];
}

Look series_look(std::size_t index) {
  constexpr std::array<Look, 6> looks = {{{"#0072B2", 7},
                                          {"#E69F00", 4},
                                          {"#D55E00", 5},
                                          {"#009E73", 9},
                                          {"#CC79A7", 13},
                                          {"#56B4E9", 6}}};
  Look look = looks[index % looks.size()];
  // The next turns have the same colours with other marks.
  if (const std::size_t turn = index / looks.size(); turn > 0) {
    const Look& other = looks[(index + 2 * turn) % looks.size()];
    look.point = other.point;
  }
  return look;
}

Look shape_look(std::size_t index, bool filled) {
  constexpr std::array<Look, shapes + 1> hollow = {{{"#0072B2", 6, 0.9},
                                                    {"#D55E00", 4, 0.85},
                                                    {"#009E73", 8, 1},
                                                    {"#CC79A7", 12, 1.1},
                                                    {"#E69F00", 10, 1},
                                                    {"#56B4E9", 14, 1},
                                                    {"#606060", 6, 0.7}}};
  Look look = hollow[std::min(index, shapes)];
  if (filled) ++look.point;
  return look;
}

}  // namespace lambcast::report
