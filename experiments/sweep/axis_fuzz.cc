// Parses values of --scan and --list, one per line.
#include "experiments/scenario/scan.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(axis, text) {
  using namespace lambcast;
  each_line(text, [](std::string_view line) {
    may_refuse([&] { parse_scan(line); });
    may_refuse([&] { parse_list(line); });
  });
}
