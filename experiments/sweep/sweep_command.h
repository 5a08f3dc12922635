// The command line that makes the rows of a sweep, for its manifest. Words with special characters
// are quoted for the shell, since names of files may contain any character.
#pragma once

#include <string>
#include <vector>

#include "experiments/scenario/scan.h"
#include "experiments/scenario/what_if.h"

namespace lambcast {

// Returns the command of a sweep of a file or study, narrowed by flags: "lambcast sweep bert_large
// --list gpus=16,64".
std::string sweep_command(const std::string& file, const std::vector<Axis>& axes);

// Returns the command of a sweep that flags define without a file: "lambcast sweep --model
// bert-large --list gpus=16,64".
std::string sweep_command(const WhatIf& base, const std::vector<Axis>& axes);

}  // namespace lambcast
