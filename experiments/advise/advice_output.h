// Formats an advice as text (a verdict and a table), JSON (schema version 1) and CSV.
#pragma once

#include <string>

#include "experiments/advise/advice.h"

namespace lambcast {

std::string advice_text(const Advice& advice);
std::string advice_json(const Advice& advice);
// Returns one row per implementation of the kernels and backend, the recommended backend first. It
// has the columns of simulate and sweep; ratios are relative to the baseline of the text.
std::string advice_csv(const Advice& advice, Catalog& catalog);

}  // namespace lambcast
