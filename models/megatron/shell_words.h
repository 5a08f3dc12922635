// Splits text into words as a shell does, as far as lists of arguments and the scripts around them
// need it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast::megatron {

struct ShellWord {
  std::string text;
  int line = 0;
  std::string unset;    // a variable in it that has no value here; empty: none
  bool branch = false;  // of a script: where the shell chooses or repeats (if, case, for, while)
};

// Without comments and the parentheses of NAME=( ... ). NAME=value at the start of a line and
// outside such a list is no word but defines what $NAME and ${NAME} stand for; $NAME[@] of another
// list is left out.
//
// Of a script, which begins with "#!", the words are those of its lists, of strings of arguments
// (NAME="--a 1 --b") and what torchrun and python are given; other commands are skipped. Nothing is
// run: what a branch defines, and what a command puts out, has no value.
//
// Throws Error (usage) with file and line for a quote that is not closed and more than 100,000
// words.
std::vector<ShellWord> shell_words(std::string_view text, const std::string& file);

// Whether a line names the program outside a comment: "torchrun pretrain_bert.py".
bool names_program(std::string_view text, std::string_view program);

}  // namespace lambcast::megatron
