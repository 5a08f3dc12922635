#include "models/training/run/execute.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "models/training/run/account.h"

namespace lambcast {
namespace {

Duration ms(double value) { return Duration::microseconds(1e3 * value); }

PlanOp op(std::string name, Stream stream, Work work, std::vector<OpId> after = {}) {
  const Category part = stream == Stream::compute ? Category::backward : Category::gradient_comm;
  return {std::move(name), part, stream, std::move(work), 1, std::move(after)};
}

Price compute(double expected, double low, double high) {
  Price price;
  price.time = ms(expected);
  price.wires = {ms(expected), ms(expected)};
  price.compute = {ms(low), ms(high)};
  return price;
}

Price wire(double expected, double low, double high) {
  Price price = compute(expected, expected, expected);
  price.wires = {ms(low), ms(high)};
  return price;
}

TEST_CASE("execute: the interval of a step is what runs at either end give") {
  // A backward pass of 10 (5 to 20) ms that overlaps a collective of 8 (4 to 16) ms.
  StepPlan beside;
  beside.ops = {op("backward", Stream::compute, PassWork{true}),
                op("all_reduce", Stream::communication, Call{})};
  const Execution step = execute(beside, {compute(10, 5, 20), wire(8, 4, 16)});
  CHECK(step.timeline.end.since_start() == ms(10));
  // Low: fast wires hide as well as before (0 off), behind a fast pass the collective shows (8, 2
  // off). Half widths would have taken the pass for all of the step: 5 off.
  CHECK(step.interval.low.s() == Approx(ms(8).s()));
  // High: a slow collective outlasts the pass by 6, a slow pass lasts 10 longer; half widths would
  // have added all 8 of the collective, hidden ones included.
  CHECK(step.interval.high.s() == Approx(0.010 + std::hypot(0.006, 0.010)));

  // In a row nothing hides: the half widths, d and e, meet at sqrt(d^2 + e^2).
  StepPlan chain = beside;
  chain.ops[1].after = {0};
  const Execution serial = execute(chain, {compute(10, 5, 20), wire(8, 4, 16)});
  CHECK(serial.timeline.end.since_start() == ms(18));
  CHECK(serial.interval.low.s() == Approx(0.018 - std::hypot(0.004, 0.005)));
  CHECK(serial.interval.high.s() == Approx(0.018 + std::hypot(0.008, 0.010)));

  // Left out, both ends are the expected time.
  const Execution fast = execute(chain, {compute(10, 5, 20), wire(8, 4, 16)}, Intervals::left_out);
  CHECK(fast.timeline.end == serial.timeline.end);
  CHECK(fast.interval.low == ms(18));
  CHECK(fast.interval.high == ms(18));
}

}  // namespace
}  // namespace lambcast
