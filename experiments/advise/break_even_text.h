// The sentence of `advise` on the NIC bandwidths at which compression pays.
#pragma once

#include <string>

#include "experiments/advise/advice.h"

namespace lambcast {

// Returns a sentence such as "It does not pay above a NIC bandwidth of 40 Gbit/s (25 to 60 Gbit/s);
// this cluster has ...".
std::string break_even_sentence(const Answer& answer);

}  // namespace lambcast
