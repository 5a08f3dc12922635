// Rates for people.
#pragma once

#include <string>

namespace lambcast {

// Four digits, and commas between thousands: "485,900".
std::string rate_text(double rate);

}  // namespace lambcast
