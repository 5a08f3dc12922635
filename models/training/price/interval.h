// How far a step may be off: what enters it errs in two ways, wires together and computations
// together, the two apart, as networks and GPUs are. The step is priced and run with all of one
// kind at the low and at the high end of their own intervals, the other kind as expected. With
// wires d and computations e away from the expected t, its interval is
//
//   t -+ sqrt(d^2 + e^2)
//
// but begins no earlier than the least that a step can take (nic_sharing.h).
//
// Adding up half widths would be wrong wherever anything runs beside something else: what hides may
// grow until it shows, and shortens no step. Where wires were fitted to whole steps, the errors of
// the two cancel in part: the interval is too wide then.
#pragma once

#include <array>

#include "sim/base/units.h"

namespace lambcast {

struct Interval {
  Duration low, high;
};

// What is at an end of its interval.
enum class End { expected, wires_low, wires_high, compute_low, compute_high };
inline constexpr std::array all_ends{End::expected, End::wires_low, End::wires_high,
                                     End::compute_low, End::compute_high};

// Four further runs, which those spare who compare expected times alone: ends are these then.
enum class Intervals { left_out, found };

// `wires` and `compute`: with either kind at its ends.
Interval interval_of(Duration expected, const Interval& wires, const Interval& compute,
                     Duration least = {});

}  // namespace lambcast
