// Sizes as nccl-tests spells them, "64K", "1G", "1P": powers of 1024.
#pragma once

#include <string>

namespace lambcast {

// Bytes, 1 to 1P. Throws Error naming `flag`.
double parse_size(const std::string& text, const char* flag);

}  // namespace lambcast
