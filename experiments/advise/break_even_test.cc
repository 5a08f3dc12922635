#include "experiments/advise/break_even.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

using Catch::WithinRel;

double gbit_per_s(const PayingBandwidth& found) { return found.at->value() * 8e-9; }

TEST_CASE("a break-even is where the speed-up crosses 1") {
  // The curve (10 Gbit/s / rate)^0.2 is 1 at 10 Gbit/s.
  const auto falling = [](Bandwidth nic) { return std::pow(10 / (nic.value() * 8e-9), 0.2); };
  CHECK(break_even_level(falling) == 1);
  const PayingBandwidth found = break_even(falling, 1);
  REQUIRE(found.at);
  CHECK_THAT(gbit_per_s(found), WithinRel(10.0, 1e-3));
  CHECK_FALSE(found.pays_above);
}

TEST_CASE("a line that is flat around 1 has its break-even where it leaves 1") {
  // A speed-up of 1.0001 below 400 Gbit/s and 0.9999 above counts as 1 throughout. 40 Gbit/s / rate
  // is 1.001 at 39.96 Gbit/s.
  const auto flat_beyond_40 = [](Bandwidth nic) {
    const double rate = nic.value() * 8e-9;
    return rate < 40 ? 40 / rate : rate < 400 ? 1.0001 : 0.9999;
  };
  CHECK(break_even_level(flat_beyond_40) == 1.001);
  const PayingBandwidth found = break_even(flat_beyond_40, 1.001);
  REQUIRE(found.at);
  CHECK_THAT(gbit_per_s(found), WithinRel(39.96, 2e-3));

  const auto flat = [](Bandwidth nic) { return nic.value() * 8e-9 < 40 ? 1.0001 : 0.9999; };
  const PayingBandwidth never = break_even(flat, break_even_level(flat));
  CHECK_FALSE(never.at);
  CHECK_FALSE(never.pays_at_any_bandwidth);
}

}  // namespace
}  // namespace lambcast
