// Splits text into words as a shell does, as far as lists of arguments need it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

struct ShellWord {
  std::string text;
  int line = 0;
};

// Without comments and the parentheses of NAME=( ... ). NAME=value at the start of a line and
// outside such a list is no word but defines what $NAME and ${NAME} stand for; $NAME[@] of another
// list is left out. Throws Error (usage) with file and line for a quote that is not closed, a name
// that has no value, and more than 100,000 words.
std::vector<ShellWord> shell_words(std::string_view text, const std::string& file);

}  // namespace lambcast::megatron
