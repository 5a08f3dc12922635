// Variables of a shell script, and the words that they expand to.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/megatron/shell_script.h"

namespace lambcast::megatron {

struct ShellValue {
  std::vector<std::string> items;  // one item unless it is an array
  bool list = false;
  bool operator==(const ShellValue&) const = default;
};

// A text that stands for the missing value of the variable `name`. Concatenation keeps it.
std::string without_value(std::string_view name);

// Returns the name of the first variable without a value in `text`; empty if there is none.
std::string missing_name(std::string_view text);

// Begins a word that an undecided branch adds to a list.
constexpr char branch_mark = '\x03';

// The name that stands for the output of a command.
constexpr std::string_view command_output = "output";

class ShellValues {
 public:
  // `given` values replace all assignments to their names.
  explicit ShellValues(Variables given);

  void assign(const std::string& name, ShellValue value, bool append);
  // Assigns positional parameters and loop variables, which `given` does not replace.
  void bind(const std::string& name, std::string text) { values_[name] = {{std::move(text)}}; }
  void erase(const std::string& name) { values_.erase(name); }

  // Expands a word of source text, split at unquoted spaces.
  std::vector<std::string> fields(std::string_view source);
  // Expands a word of source text without splitting.
  std::string whole(std::string_view source);
  // Expands variables as inside double quotes.
  std::string quoted(std::string_view source);

  std::vector<std::string> positional() const;
  void set_positional(const std::vector<std::string>& words);

  // State of the variables, to evaluate both sides of an undecided branch.
  using State = std::map<std::string, ShellValue>;
  const State& state() const { return values_; }
  void restore(State state) { values_ = std::move(state); }
  // Keeps the values that both states agree on; the others have none.
  void merge(const State& other);

 private:
  class Expansion;
  std::string calculated(std::string_view source);
  std::vector<std::string> parameter(std::string_view inside);
  std::vector<std::string> otherwise(const std::string& name, std::string_view rest);
  std::vector<std::string> edited(const std::string& name, std::string_view rest);
  std::string length_of(std::string_view name);
  std::string text_of(const std::string& name) const;

  Variables given_;
  State values_;
};

}  // namespace lambcast::megatron
