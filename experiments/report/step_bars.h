// Stacked bars of the parts of a step, one bar per kind of step and GPU count. The bars of the
// plain optimizer are next to those of the compressed one.
//
// The parts follow one another in a step, so they add up to its time; the remainder is the rest of
// the step. The step of a run without a row is drawn as a whole.
// Bars show GPU time per sample, step_time * gpus / global_batch. Step times of one global batch on
// 8 and on 256 GPUs differ too much for one axis. The step time itself is printed above each bar
// and, part by part, in the data file.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "experiments/report/slice.h"

namespace lambcast::report {

struct Bar {
  std::string label;  // "LAMB", "warm-up", "compressed"
  double gpus = absent, global_batch = absent, step_time_us = absent;
  // step_parts, then the remaining time, then the time of a step whose parts are not known
  std::array<double, step_parts.size() + 2> parts_us{};
  double low_us = absent, high_us = absent;  // interval of the step time

  double& rest_us() { return parts_us[step_parts.size()]; }
};

struct BarPanel {
  std::string title;
  std::vector<Bar> bars;  // grouped by GPU count, ascending
};

// Limit of the GPU counts in a figure. If there are more, evenly chosen ones are kept.
inline constexpr std::size_t most_groups = 6;

// Returns the bars of one cluster for one compressed optimizer and its baseline, for each GPU
// count. If the baseline has no row, its bar is the mean step of its run, without parts.
BarPanel bar_panel(const Points& points, std::string title);

// Returns the number of bars whose parts overlap in time, so that they add up to more than the
// step.
std::size_t overlapping(const std::vector<BarPanel>& panels);

std::string bar_data(const std::vector<BarPanel>& panels, const std::vector<std::string>& notes);
std::string bar_script(const std::vector<BarPanel>& panels, const std::string& name,
                       const std::string& title);

}  // namespace lambcast::report
