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
  std::string condition;         // variable that decides whether it runs; empty: it always runs
};

struct Script {
  std::vector<Launch> launches;
  std::map<std::string, std::string> files;    // content of here-documents by file name
  std::vector<ShellWord> strays;               // arguments that begin a command of their own
  std::vector<ShellWord> sourced;              // files of 'source', which are not read
  std::map<std::string, std::string> reasons;  // commands that took a value from a name
};

// Evaluates assignments, arrays, +=, quotes, ${X:-n} and its kin, $((...)), if, case, for, while,
// functions, subshells, pipelines, here-documents, eval and bash -c. Output of commands, variables
// that are never assigned and those that a command set which is not evaluated (read, source) have
// no value; words that contain one carry its name in ShellWord::unset. `given` holds such values,
// positional parameters as "1", "2".
//
// Throws Error (usage) with file and line for syntax outside this subset and for scripts of more
// than 256 kB of evaluated words, 500 repetitions or 2 MB of written text.
Script run_script(std::string_view text, const std::string& file, const Variables& given = {});

}  // namespace lambcast::megatron
