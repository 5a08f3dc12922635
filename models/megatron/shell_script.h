// Evaluates the part of the shell language that launch scripts use, without executing anything.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/megatron/shell_words.h"

namespace lambcast::megatron {

using Variables = std::map<std::string, std::string>;

// A command with a Python program among its words.
struct Launch {
  int line = 0;
  std::vector<ShellWord> words;  // launcher, program, arguments
  std::string condition;         // variable on which it depends; empty: it always runs
};

struct Script {
  std::vector<Launch> launches;
  std::map<std::string, std::string> files;    // content of here-documents by file name
  std::vector<ShellWord> strays;               // arguments at the start of a command
  std::vector<ShellWord> sourced;              // files of 'source', which are not read
  std::map<std::string, std::string> reasons;  // by variable name: command that removed its value
};

// Evaluates assignments, arrays, +=, quotes, ${X:-n} and similar forms, $((...)), if, case, for,
// while, functions, subshells, pipelines, here-documents, eval and bash -c. The output of commands,
// variables that are never assigned, and variables set by a command that is not evaluated (read,
// source) have no value. A word that contains one has its name in ShellWord::unset. `given`
// provides such values, positional parameters as "1", "2".
//
// Throws Error (usage) with file and line for syntax outside this subset and for scripts with more
// than 256 kB of evaluated words, 500 repetitions or 2 MB of written text.
Script run_script(std::string_view text, const std::string& file, const Variables& given = {});

}  // namespace lambcast::megatron
