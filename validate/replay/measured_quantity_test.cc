#include "validate/replay/measured_quantity.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "sim/base/error.h"

namespace lambcast {
namespace {

TEST_CASE("measured step: a metric with its unit becomes a figure of the replay") {
  const WhatIf what_if{{"model", "bert-large"}};
  const SourceFigure time = measured_step("step_time=5436ms", what_if);
  CHECK(time.quantity == Quantity::step_time_s);
  CHECK(time.measured == Approx(5.436));
  CHECK(time.what_if == what_if);
  CHECK(measured_step("mfu=41%", what_if).measured == Approx(41));
  CHECK(measured_step("mfu=0.41", what_if).measured == Approx(41));
  CHECK(measured_step("memory=71GiB", what_if).measured == Approx(71));
  CHECK(measured_step("memory_gib=71", what_if).measured == 71);
  CHECK(measured_step("tokens_per_gpu_s=3400", what_if).quantity == Quantity::tokens_per_gpu_s);
}

TEST_CASE(
    "measured step: an unknown metric, a text and a value that is not above zero are "
    "refused") {
  for (const char* text : {"steptime=3s", "step_time", "step_time=3", "tokens_per_s=many",
                           "tokens_per_s=0", "tokens_per_s=-4", "mfu=%"}) {
    INFO(text);
    CHECK_THROWS_AS(measured_step(text, {}), Error);
  }
}

// A percentage without its sign would be a share above 1.
TEST_CASE("measured step: a utilization above the peak is refused, with what was meant") {
  for (const int percent : {2, 45, 100})
    CHECK_THROWS_WITH(measured_step(fmt::format("mfu={}", percent), {}),
                      Catch::Contains(fmt::format("try: mfu={}%", percent)));
  CHECK_THROWS_WITH(measured_step("mfu=140%", {}), Catch::Contains("0 to 1, or 0% to 100%"));
  CHECK(measured_step("mfu=1", {}).measured == Approx(100));
}

}  // namespace
}  // namespace lambcast
