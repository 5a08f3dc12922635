// Splits text into words like a shell, as far as lists of arguments and their scripts need it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

struct ShellWord {
  std::string text;
  int line = 0;
  std::string unset;    // a variable in it without a value; empty: none
  bool branch = false;  // the word is inside if, case, for or while of a script
};

// Returns the words without comments and the parentheses of NAME=( ... ). NAME=value at the start
// of a line and outside such a list is not a word, but defines the value of $NAME and ${NAME};
// $NAME[@] of another list is left out.
//
// In a script, which begins with "#!", the words are those of its lists, of strings of arguments
// (NAME="--a 1 --b") and the arguments of torchrun and python; other commands are skipped. Nothing
// is executed: variables defined in a branch, and outputs of commands, have no value.
//
// Throws Error (usage) with file and line for a quote that is not closed and more than 100,000
// words.
std::vector<ShellWord> shell_words(std::string_view text, const std::string& file);

// Returns whether a line names the program outside a comment: "torchrun pretrain_bert.py".
bool names_program(std::string_view text, std::string_view program);

}  // namespace lambcast::megatron
