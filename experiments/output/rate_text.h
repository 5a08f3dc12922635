// Formats rates as text.
#pragma once

#include <string>

namespace lambcast {

// Formats four digits, with commas between thousands: "485,900".
std::string rate_text(double rate);

}  // namespace lambcast
