// An advice for people (a verdict and a table) and for programs (JSON, schema version 1; CSV).
#pragma once

#include <string>

#include "experiments/advise/advice.h"

namespace lambcast {

std::string advice_text(const Advice& advice);
std::string advice_json(const Advice& advice);
// A row per implementation of the kernels and backend, the backend to take first, with the columns
// of simulate and sweep; all against the baseline of the text.
std::string advice_csv(const Advice& advice, Catalog& catalog);

}  // namespace lambcast
