// Simple commands of a shell script: assignments, the shell's own commands, and launches.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/megatron/shell_script.h"
#include "models/megatron/shell_test.h"
#include "models/megatron/shell_values.h"

namespace lambcast::megatron {

// A word as it stands in the script; NAME=( ... ) is one word with items.
struct ShellSource {
  int line = 0;
  std::string_view text;
  bool list = false;
  std::vector<std::string_view> items;
};

enum class ShellStop { none, loop, function, script };

// State of an evaluation, shared by the texts that a script evaluates.
struct ShellState {
  static constexpr int most_nested = 60, most_steps = 200'000;

  std::string file;
  ShellValues values;
  std::map<std::string, std::pair<std::string, int>> functions = {};  // body, its line
  std::vector<std::string> conditions = {};  // names that undecided branches depend on
  std::string doubt = {};                    // the name behind the last unknown status
  ShellStop stop = ShellStop::none;
  int steps = 0, depth = 0;
  std::vector<Launch> launches = {};
  std::map<std::string, std::string> files = {};
  std::vector<ShellWord> strays = {};
};

using EvaluateText = std::function<void(std::string_view text, int line)>;

// Runs assignments and the shell's own commands, records launches, and skips other commands.
ShellStatus run_command(const std::vector<ShellSource>& words, ShellState& state,
                        const EvaluateText& evaluate);

}  // namespace lambcast::megatron
