// Compares the GPU named in a log with that of a description.
#pragma once

#include <string>
#include <string_view>

#include "validate/measurement.h"

namespace lambcast::validate {

// Returns the GPU of the log if its model differs from the device `device` ("h100", "a100-80g").
// Empty if it is the same, or if the log names none.
std::string other_gpu(const Measurement& measurement, std::string_view device);

}  // namespace lambcast::validate
