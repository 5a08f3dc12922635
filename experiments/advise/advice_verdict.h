// The headline of an advice. If two changes are compared, such as turning ZeRO off and compressing,
// it states the gain of each.
#pragma once

#include <string>

#include "experiments/advise/advice.h"

namespace lambcast {

const char* whose_kernels(const Answer& answer);

std::string verdict_text(const Advice& advice, const Answer& answer);

}  // namespace lambcast
