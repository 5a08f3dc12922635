// Parts of a step that follow one another and add up to its time, and the group of each part.
// Columns of forecasts (forecast.h, "forward_us" and so on), figures and pages all use this list.
//
// Communication counts only if it is exposed: otherwise it overlaps the backward pass.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

namespace lambcast {

// Groups of parts, in the order in which losses are reported.
enum class PartGroup { compute, wire, compression, optimizer, bubble };
inline constexpr std::array<std::string_view, 5> part_group_names{"compute", "wire", "compression",
                                                                  "optimizer", "bubble"};
constexpr std::string_view name_of(PartGroup group) {
  return part_group_names[static_cast<std::size_t>(group)];
}

struct PartOfStep {
  std::string_view name;
  PartGroup group;
};
inline constexpr std::array<PartOfStep, 7> parts_of_step{{{"forward", PartGroup::compute},
                                                          {"backward", PartGroup::compute},
                                                          {"exposed_comm", PartGroup::wire},
                                                          {"compress", PartGroup::compression},
                                                          {"decompress", PartGroup::compression},
                                                          {"optimizer", PartGroup::optimizer},
                                                          {"bubble", PartGroup::bubble}}};
inline constexpr auto step_parts = [] {
  std::array<std::string_view, parts_of_step.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = parts_of_step[i].name;
  return names;
}();

// Microseconds of a step by group.
struct PartTimes {
  std::array<double, part_group_names.size()> us{};

  double& operator[](PartGroup group) { return us[static_cast<std::size_t>(group)]; }
  double operator[](PartGroup group) const { return us[static_cast<std::size_t>(group)]; }
};

}  // namespace lambcast
