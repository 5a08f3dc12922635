// Parses the flags of `measure`, one per line, and computes the resulting sizes.
#include "sim/base/fuzz_target.h"
#include "validate/measure/options.h"

FUZZ_TARGET(flags, text) {
  using namespace lambcast;
  using namespace lambcast::validate;
  std::vector<std::string> flags;
  // As in the arguments of a program, a word ends at its first zero byte.
  each_line(text,
            [&](std::string_view line) { flags.emplace_back(line.substr(0, line.find(char{}))); });
  const MeasureOptions options = parse_measure_flags(flags);
  const std::uint64_t block = block_bytes(options.operation, 3);
  std::uint64_t before = 0;
  for (const std::uint64_t size : sizes_to_run(options, block)) {
    if (size <= before || size > options.max_bytes || size % block != 0)
      throw std::logic_error("a size that nobody asked for");
    before = size;
  }
}
