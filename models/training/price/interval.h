// Interval of a step's time. Its inputs err in two independent groups: all wires together, and all
// computations together. The step is priced and run with one group at the low and at the high end
// of its intervals, and with the other as expected. If wires move the expected time t by d and
// computations by e, the interval is
//
//   t -+ sqrt(d^2 + e^2)
//
// It begins no earlier than the least time of a step (nic_sharing.h).
//
// Adding half widths of operations would be wrong if they overlap: hidden work may grow until it is
// exposed, and does not shorten the step. If wires were fitted to whole steps, the errors of the
// two groups partly cancel, and the interval is too wide.
#pragma once

#include <array>

#include "sim/base/units.h"

namespace lambcast {

struct Interval {
  Duration low, high;
};

// The group of inputs that is at an end of its interval.
enum class End { expected, wires_low, wires_high, compute_low, compute_high };
inline constexpr std::array all_ends{End::expected, End::wires_low, End::wires_high,
                                     End::compute_low, End::compute_high};

// Whether the four further runs for the interval's ends are made. Without them, all ends equal the
// expected time.
enum class Intervals { left_out, found };

// Returns the interval around `expected`, given the times with `wires` and with `compute` at their
// ends.
Interval interval_of(Duration expected, const Interval& wires, const Interval& compute,
                     Duration least = {});

}  // namespace lambcast
