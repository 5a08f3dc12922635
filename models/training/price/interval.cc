#include "models/training/price/interval.h"

#include <algorithm>
#include <cmath>

namespace lambcast {
namespace {

Duration together(Duration wires, Duration compute) {
  const Duration none;
  return Duration::seconds(std::hypot(std::max(none, wires).s(), std::max(none, compute).s()));
}

}  // namespace

Interval interval_of(Duration expected, const Interval& wires, const Interval& compute,
                     Duration least) {
  const Duration low = expected - together(expected - wires.low, expected - compute.low);
  return {std::max(low, std::min(least, expected)),
          expected + together(wires.high - expected, compute.high - expected)};
}

}  // namespace lambcast
