#include "experiments/sweep/sweep_command.h"

#include <fmt/format.h>

#include "experiments/scenario/words.h"
#include "sim/base/shell_word.h"

namespace lambcast {
namespace {

std::string lists_of(const std::vector<Axis>& axes) {
  std::string words;
  for (const auto& [key, values] : axes)
    words +=
        fmt::format(" --list {}", shell_word(fmt::format("{}={}", key, fmt::join(values, ","))));
  return words;
}

}  // namespace

std::string sweep_command(const std::string& file, const std::vector<Axis>& axes) {
  return fmt::format("lambcast sweep {}{}", shell_word(file), lists_of(axes));
}

std::string sweep_command(const WhatIf& base, const std::vector<Axis>& axes) {
  std::string command = "lambcast sweep";
  for (const auto& [key, value] : base) {
    const WhatIfKey* row = find_key(key);
    if (row == nullptr)
      command += fmt::format(" --set {}", shell_word(fmt::format("{}={}", key, value)));
    else
      command += fmt::format(" {} {}", flag(key).key, shell_word(value));
  }
  return command + lists_of(axes);
}

}  // namespace lambcast
