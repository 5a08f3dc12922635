// Turns every exception into a sentence for a user. A library's message ("basic_string::_M_create")
// names neither the wrong file or flag nor a remedy, so it is never printed.
#pragma once

#include <exception>
#include <string>

#include "sim/base/error.h"

namespace lambcast {

struct Complaint {
  std::string text;  // what failed, in which file if that is known, and what to try
  Exit code = Exit::failure;
};

// Error and InternalError keep their own message. System errors name the path and the reason.
// Errors of the JSON library name the file that this thread read last. Every other exception counts
// as a fault of this program.
Complaint complaint_of(const std::exception& error);

// The message of complaint_of() if memory is exhausted. A constant, so that it can be printed
// without allocating.
inline constexpr char no_memory[] =
    "there is not enough memory for this; try fewer GPUs, points or threads";

}  // namespace lambcast
