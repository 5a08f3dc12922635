// Conditions of shell scripts: test, [ ] and [[ ]].
#pragma once

#include <string>
#include <vector>

namespace lambcast::megatron {

enum class ShellStatus { yes, no, unknown };

// Evaluates the words of a condition. Files are never looked at: their tests are unknown. `doubt`
// receives the name of a variable without a value that the result depends on.
ShellStatus shell_test(const std::vector<std::string>& words, std::string& doubt);

}  // namespace lambcast::megatron
