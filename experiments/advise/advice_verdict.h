// The headline of an advice. Of two changes, such as leaving ZeRO and compressing, it states the
// gain of each.
#pragma once

#include <string>

#include "experiments/advise/advice.h"

namespace lambcast {

const char* whose_kernels(const Answer& answer);

std::string verdict_text(const Advice& advice, const Answer& answer);

}  // namespace lambcast
