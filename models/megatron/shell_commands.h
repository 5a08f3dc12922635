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

// A word in the source of the script; NAME=( ... ) is one word with items.
struct ShellSource {
  int line = 0;
  std::string_view text;
  bool list = false;
  std::vector<std::string_view> items;
};

// The command that ended the evaluation of a list: continue, break, return, exit.
enum class ShellStop { none, next, loop, function, script };

// State of an evaluation, shared by the texts that a script evaluates.
struct ShellState {
  // Limits of the evaluated text, in characters. Each word counts as `of_word` additional
  // characters, each repetition of a loop or of an evaluated text as `of_repetition`.
  static constexpr int most_steps = 1 << 18, of_word = 16, of_repetition = 512;
  static constexpr int most_nested = 32;
  static constexpr std::size_t most_text = 2 << 20;  // ShellValues::written

  std::string file;
  ShellValues values;
  std::map<std::string, std::pair<std::string, int>> functions = {};  // body and its line
  std::vector<std::string> conditions = {};  // names on which undecided branches depend
  std::string doubt = {};                    // name that caused the last unknown status
  ShellStop stop = ShellStop::none;
  // Variables that decide whether a break or continue runs, and whether a return runs.
  std::string undecided_stop = {}, undecided_return = {};
  bool may_exit = false;  // an undecided branch ended with exit
  int steps = 0, depth = 0;
  std::vector<Launch> launches = {};
  std::map<std::string, std::string> files = {};
  std::vector<ShellWord> strays = {};
  std::vector<ShellWord> sourced = {};
};

using EvaluateText = std::function<void(std::string_view text, int line)>;

// Evaluates a loop or a function. If it is unknown where the body ends, because that depends on the
// variable `undecided`, all names that the body changed have no value afterwards.
void evaluate_bounded(ShellState& state, std::string& undecided, const std::function<void()>& body);

// Runs assignments and the shell's own commands, records launches, and skips other commands.
ShellStatus run_command(const std::vector<ShellSource>& words, ShellState& state,
                        const EvaluateText& evaluate);

}  // namespace lambcast::megatron
