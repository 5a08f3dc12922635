// The argument list that a launch script passes to its training program.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/finding.h"
#include "models/megatron/shell_script.h"

namespace lambcast::megatron {

struct LaunchArguments {
  // Arguments of the program. In front of them stand --nnodes, --nproc-per-node and --world-size,
  // from its launcher.
  std::vector<ShellWord> words;
  std::string program;
  std::map<std::string, std::string> files;    // here-documents written by the script
  std::map<std::string, std::string> reasons;  // by variable name: command that removed its value
};

// Reads the launch in a script, with any launcher. Text without a launch is read as lists of
// arguments (shell_words.h). If launches differ, the first is read and a finding names the others.
//
// Throws Error (usage) if the launch depends on a variable without a value, and if `given` names a
// variable that the script does not use.
LaunchArguments launch_arguments(std::string_view text, const std::string& file,
                                 const Variables& given, std::vector<Finding>& findings);

}  // namespace lambcast::megatron
