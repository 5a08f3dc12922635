#include "experiments/report/step_bars.h"

#include <catch2/catch.hpp>

namespace lambcast::report {
namespace {

// Returns a run of 10 s and 100 steps that is twice as fast as plain LAMB.
Point compressed_row() {
  Point p;
  p.optimizer = "onebit_lamb";
  p.baseline = "lamb";
  p.gpus = 8;
  p.global_batch = 64;
  p.steps = 100;
  p.run_time_s = 10;
  p.speedup = 2;
  p.kinds = {{{StepKind::compression, 100e3, absent, absent, {}}}};
  return p;
}

TEST_CASE("step bars: without rows of the baseline its bar is the mean step of its run") {
  const Point p = compressed_row();
  const BarPanel panel = bar_panel({&p}, "");
  REQUIRE(panel.bars.size() == 2);
  CHECK(panel.bars[0].label == "LAMB");
  CHECK(panel.bars[0].step_time_us == Approx(200e3));  // 2 x 10 s over 100 steps
  CHECK(panel.bars[0].parts_us.back() == Approx(200e3));
}

TEST_CASE("step bars: a row of the baseline has its own bar") {
  const Point p = compressed_row();
  Point plain = compressed_row();
  plain.optimizer = "lamb";
  plain.kinds = {{{StepKind::uniform, 190e3, absent, absent, {}}}};
  const BarPanel panel = bar_panel({&p, &plain}, "");
  REQUIRE(panel.bars.size() == 2);
  CHECK(panel.bars[0].step_time_us == Approx(190e3));
}

}  // namespace
}  // namespace lambcast::report
