// The GPU that a log names, next to that of a description.
#pragma once

#include <string>
#include <string_view>

#include "validate/measurement.h"

namespace lambcast::validate {

// The GPU of the log if it is another model than the device `device` ("h100", "a100-80g"); empty if
// it is the same, or if the log names none.
std::string other_gpu(const Measurement& measurement, std::string_view device);

}  // namespace lambcast::validate
