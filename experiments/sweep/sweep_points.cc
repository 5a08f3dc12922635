#include "experiments/sweep/sweep_points.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/check.h"

namespace lambcast {
namespace {

constexpr std::size_t max_points = 10'000'000;

}  // namespace

std::size_t PointBlock::size() const {
  std::size_t count = 1;
  for (const Axis& axis : axes) {
    count *= axis.second.size();
    if (count > max_points) return max_points + 1;  // avoids overflow
  }
  return count;
}

std::vector<std::string> PointBlock::values(const std::string& key) const {
  for (const Axis& axis : axes)
    if (axis.first == key) return axis.second;
  const auto value = fixed.find(key);
  return value == fixed.end() ? std::vector<std::string>{} : std::vector{value->second};
}

WhatIf PointBlock::point(std::size_t i) const {
  WhatIf point = fixed;
  for (std::size_t a = axes.size(); a-- > 0;) {
    const auto& [key, values] = axes[a];
    point[key] = values[i % values.size()];
    i /= values.size();
  }
  return point;
}

void SweepPoints::add(PointBlock block) {
  const std::size_t end = size() + block.size();
  if (end > max_points)
    throw Error(Exit::usage, fmt::format("the sweep has more than {} points", max_points));
  blocks_.push_back(std::move(block));
  ends_.push_back(end);
}

WhatIf SweepPoints::operator[](std::size_t i) const {
  LAMBCAST_CHECK(i < size(), "point {} of {}", i, size());
  const auto block =
      static_cast<std::size_t>(std::upper_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  return blocks_[block].point(block == 0 ? i : i - ends_[block - 1]);
}

std::vector<Axis> axes_of(const SweepPoints& points) {
  struct Seen {
    std::set<std::string> known;
    std::vector<std::string> in_order;
    std::size_t blocks = 0;
  };
  std::map<std::string, Seen> keys;
  const auto see = [&](const std::string& key, const std::vector<std::string>& values) {
    Seen& seen = keys[key];
    ++seen.blocks;
    for (const std::string& value : values)
      if (seen.known.insert(value).second) seen.in_order.push_back(value);
  };
  for (const PointBlock& block : points.blocks()) {
    for (const auto& [key, value] : block.fixed) see(key, {value});
    for (const auto& [key, values] : block.axes) see(key, values);
  }
  std::vector<Axis> axes;
  for (auto& [key, seen] : keys)
    if (seen.in_order.size() > 1 || seen.blocks < points.blocks().size())
      axes.emplace_back(key, std::move(seen.in_order));
  return axes;
}

std::vector<std::string> values_of(const WhatIf& point, const std::vector<Axis>& axes) {
  std::vector<std::string> values;
  for (const auto& [key, all] : axes) {
    const auto said = point.find(key);
    values.push_back(said == point.end() ? "-" : said->second);
  }
  return values;
}

std::string point_name(const WhatIf& point, const std::vector<Axis>& axes) {
  std::string name;
  for (const auto& [key, all] : axes)
    if (const auto said = point.find(key); said != point.end())
      name += fmt::format("{}{}={}", name.empty() ? "" : ", ", key, said->second);
  return name.empty() ? "the only point" : name;
}

}  // namespace lambcast
