#include "validate/program/compressed_speedups.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "validate/calibrate/calibrate.h"

namespace lambcast {
namespace {

TEST_CASE("compressed speed-ups: nine in ten have the right sign, and half are within 20 %") {
  const std::vector<CompressedSpeedup> speedups = compressed_speedups();
  INFO(speedup_table(speedups));
  std::vector<double> off, off_of_deepspeed;
  double right = 0, inside = 0, inside_of_deepspeed = 0;
  for (const CompressedSpeedup& one : speedups) {
    off.push_back(std::abs(std::log(one.forecast / one.measured)));
    if (one.program == "DeepSpeed ZeRO++") {
      off_of_deepspeed.push_back(off.back());
      inside_of_deepspeed += one.inside() ? 1 : 0;
    }
    right += one.has_right_sign() ? 1 : 0;
    inside += one.inside() ? 1 : 0;
  }
  CHECK(speedups.size() == 49);
  CHECK(off_of_deepspeed.size() == 20);
  CHECK(std::expm1(validate::quantile(off_of_deepspeed, 0.5)) <= 0.08);
  CHECK(right / static_cast<double>(speedups.size()) >= 0.9);
  CHECK(inside / static_cast<double>(speedups.size()) >= 0.85);
  CHECK(inside / static_cast<double>(speedups.size()) <= 0.95);
  CHECK(inside_of_deepspeed >= 17);
  CHECK(std::expm1(validate::quantile(off, 0.5)) <= 0.2);
}

// Measured and forecast speed-ups: 1.5 and 1.2; 0.9 and 0.9; 0.9 and 1.1, with the wrong sign.
TEST_CASE("compressed speed-ups: the table counts signs and takes medians by program") {
  const std::string table =
      speedup_table({{"a", "one", 1.5, 1.2}, {"b", "two", 0.9, 0.9}, {"b", "three", 0.9, 1.1}});
  using Catch::Matchers::Contains;
  CHECK_THAT(table, Contains("a                               1   25.0%    1/1"));
  CHECK_THAT(table, Contains("2/3"));
  // The measured 1.2 lies between 1.1 and 1.54, the ends of the forecast; their ratio is 1.40.
  CHECK_THAT(speedup_table({{"c", "four", 1.2, 1.3, 1.1, 1.54}}), Contains("1/1    1/1   1.40"));
}

// DeepSpeed's blog, samples per second of Adam and of 1-bit Adam: 143 and 185 on 4 GPUs, 45.5 and
// 247 on 8 over Ethernet; 289 and 424 on 8 over InfiniBand. The gain grows once the GPUs are on
// several nodes.
TEST_CASE("compressed speed-ups: 1-bit Adam's gain grows with GPUs, in the forecast too") {
  const std::vector<CompressedSpeedup> gains = speedups_in_view(replay(published_cases()).results);
  INFO(each_speedup_table(gains));
  REQUIRE(gains.size() == 3);
  CHECK(gains[0].measured == Approx(185 / 143.));
  CHECK(gains[1].measured == Approx(247 / 45.5));
  CHECK(gains[1].forecast > 3 * gains[0].forecast);
  for (const CompressedSpeedup& one : gains) {
    CHECK(one.program == "R");
    CHECK(std::abs(std::log(one.forecast / one.measured)) < 0.1);
  }
}

}  // namespace
}  // namespace lambcast
