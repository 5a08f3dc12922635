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

TEST_CASE("execute: the interval of a step follows from its runs at either end") {
  // A backward pass of 10 (5 to 20) ms that overlaps a collective of 8 (4 to 16) ms.
  StepPlan beside;
  beside.ops = {op("backward", Stream::compute, PassWork{true}),
                op("all_reduce", Stream::communication, Call{})};
  const Execution step = execute(beside, {compute(10, 5, 20), wire(8, 4, 16)});
  CHECK(step.timeline.end.since_start() == ms(10));
  // Low: with fast wires the step stays the same (0 off). With a fast pass the collective is
  // exposed (8 ms, 2 off). The half-width of the pass would have given 5 off.
  CHECK(step.interval.low.s() == Approx(ms(8).s()));
  // High: a slow collective exceeds the pass by 6 ms, and a slow pass takes 10 ms longer. The
  // half-width of the collective would have added 8 ms, including its hidden part.
  CHECK(step.interval.high.s() == Approx(0.010 + std::hypot(0.006, 0.010)));

  // Serial operations do not overlap: the half-widths d and e add up to sqrt(d^2 + e^2).
  StepPlan chain = beside;
  chain.ops[1].after = {0};
  const Execution serial = execute(chain, {compute(10, 5, 20), wire(8, 4, 16)});
  CHECK(serial.timeline.end.since_start() == ms(18));
  CHECK(serial.interval.low.s() == Approx(0.018 - std::hypot(0.004, 0.005)));
  CHECK(serial.interval.high.s() == Approx(0.018 + std::hypot(0.008, 0.010)));

  // Without intervals, both ends are the expected time.
  const Execution fast = execute(chain, {compute(10, 5, 20), wire(8, 4, 16)}, Intervals::left_out);
  CHECK(fast.timeline.end == serial.timeline.end);
  CHECK(fast.interval.low == ms(18));
  CHECK(fast.interval.high == ms(18));
}

}  // namespace
}  // namespace lambcast
