// Fuzzes quantities with units, one per line: every accepted value is finite and not negative.
#include <cmath>

#include "sim/base/fuzz_target.h"
#include "sim/base/units.h"

FUZZ_TARGET(units, text) {
  using namespace lambcast;
  const auto sound = [](double value) {
    if (!std::isfinite(value) || value < 0) throw std::logic_error("no quantity");
  };
  each_line(text, [&](std::string_view line) {
    may_refuse([&] { sound(parse_duration(line, {}).s()); });
    may_refuse([&] { sound(parse_bytes(line, {}).value()); });
    may_refuse([&] { sound(parse_bandwidth(line, {}).value()); });
    may_refuse([&] { sound(parse_flop_rate(line, {}).value()); });
  });
}
