// Numbers of a configuration as hjson-py reads them: 11e-3, 2e-4, -1, 1E5, but neither 007 nor .5
// nor NaN, which are text there.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lambcast::deepspeed {

// Whether `text` is -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?
bool is_python_number(std::string_view text);

struct PythonNumber {
  double real = 0;                    // finite
  std::optional<std::int64_t> whole;  // exact; 5e8 counts as whole, as hjson-py has it
};

// The value of what is_python_number(), or nothing if it is out of the range of a double.
std::optional<PythonNumber> python_number(std::string_view text);

}  // namespace lambcast::deepspeed
