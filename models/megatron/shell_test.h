// Conditions of shell scripts: test, [ ] and [[ ]].
#pragma once

#include <string>
#include <vector>

namespace lambcast::megatron {

enum class ShellStatus { yes, no, unknown };

// Evaluates the words of a condition. Files are never examined: their tests are unknown. `doubt`
// receives the name of a variable without a value on which the result depends.
ShellStatus shell_test(const std::vector<std::string>& words, std::string& doubt);

}  // namespace lambcast::megatron
