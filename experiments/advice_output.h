// An advice for people (a verdict and a table) and for programs (JSON, schema version 1).
#pragma once

#include <string>

#include "experiments/advice.h"

namespace lambcast {

std::string advice_text(const Advice& advice);
std::string advice_json(const Advice& advice);

}  // namespace lambcast
