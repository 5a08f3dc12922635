#include "experiments/verdict/turns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/sort_stably.h"
#include "sim/base/units.h"

namespace lambcast {
namespace {

constexpr std::size_t most_named = 3;

// Least change that counts as a turn, as a share of the largest value: the spread of measured times
// of one step between runs.
constexpr double least_turn = 0.01;

// Returns the turn after which the step time changes most.
std::size_t steepest(const StepsOverGpus& curve, const std::vector<std::size_t>& turns) {
  return *std::ranges::max_element(turns, {}, [&](std::size_t at) {
    return std::abs(std::log(curve.step_s[at + 1] / curve.step_s[at]));
  });
}

}  // namespace

std::vector<std::size_t> turns_of(std::span<const double> values) {
  std::vector<std::size_t> turns;
  if (values.empty()) return turns;
  const auto [least, most] = std::ranges::minmax_element(values);
  const double noise = std::max(0.005 * (*most - *least), least_turn * *most);
  std::size_t extreme = 0;
  int direction = 0;  // 1: rising, -1: falling
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double change = values[i] - values[extreme];
    if (direction * change >= 0 && direction != 0) {
      extreme = i;
    } else if (std::abs(change) > noise) {
      if (direction != 0) turns.push_back(extreme);
      direction = change > 0 ? 1 : -1;
      extreme = i;
    }
  }
  return turns;
}

void StepsOverGpus::sort() {
  StepsOverGpus sorted{of, {}, {}};
  for (const std::size_t i :
       stable_order(gpus.size(), [&](auto a, auto b) { return gpus[a] < gpus[b]; })) {
    sorted.gpus.push_back(gpus[i]);
    sorted.step_s.push_back(step_s[i]);
  }
  *this = std::move(sorted);
}

std::string turns_text(std::span<const StepsOverGpus> curves) {
  std::vector<std::string> named;
  std::size_t turning = 0;
  for (const StepsOverGpus& curve : curves) {
    const std::vector<std::size_t> turns = turns_of(curve.step_s);
    if (turns.empty() || ++turning > most_named) continue;
    const std::size_t at = steepest(curve, turns);
    const auto time = [&](std::size_t i) { return to_text(Duration::seconds(curve.step_s[i])); };
    named.push_back(fmt::format("{} at {}, {} at {}{}", time(at), curve.gpus[at], time(at + 1),
                                curve.gpus[at + 1],
                                curve.of.empty() ? "" : fmt::format(" ({})", curve.of)));
  }
  if (named.empty()) return "";
  return fmt::format(
      "A step is not monotone in GPUs: {}{}. Libraries choose algorithms by the number of ranks, "
      "and "
      "it may turn between the values forecast too.",
      fmt::join(named, "; "),
      turning > most_named ? fmt::format("; {} more such curves", turning - most_named) : "");
}

}  // namespace lambcast
