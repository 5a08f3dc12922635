// Numbers of a configuration as read by hjson-py: 11e-3, 2e-4, -1 and 1E5 are numbers; 007, .5 and
// NaN are text.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace lambcast::deepspeed {

// Returns whether `text` matches -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?
bool is_python_number(std::string_view text);

struct PythonNumber {
  double real = 0;                    // finite
  std::optional<std::int64_t> whole;  // exact; 5e8 counts as whole, as in hjson-py
};

// Returns the value of a text that is_python_number(), or nothing if it exceeds the range of a
// double.
std::optional<PythonNumber> python_number(std::string_view text);

}  // namespace lambcast::deepspeed
