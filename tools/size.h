// Sizes in the notation of nccl-tests, "64K", "1G", "1P": powers of 1024.
#pragma once

#include <string>

namespace lambcast {

// Returns the bytes, 1 to 1P. Throws Error with the name `flag`.
double parse_size(const std::string& text, const char* flag);

}  // namespace lambcast
