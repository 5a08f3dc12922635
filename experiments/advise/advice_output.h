// Formats an advice as text (a verdict and a table on one screen), JSON (schema version 1) and CSV.
// explain_advice() prints what the screen leaves out:
//
//   backends    per implementation of the kernels: change of a step, and basis of the interval;
//               upper bound of any compression; why a backend does not run
//   exchanges   all exchanges, those of other libraries, and why some do not run
//   notes       findings with their meaning and remedy
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/advise/advice.h"

namespace lambcast {

std::string advice_text(const Advice& advice);
const std::vector<std::string>& advice_explanation_names();
std::string explain_advice(const Advice& advice, std::string_view what);
// Returns the part of a step that grows most relative to the plain run; nothing if no part grows.
std::optional<PartGroup> losing_part(const PartTimes& change);

std::string advice_json(const Advice& advice);
// Returns one row per implementation of the kernels and backend, the recommended backend first. It
// has the columns of simulate and sweep; ratios are relative to the baseline of the text.
std::string advice_csv(const Advice& advice, Catalog& catalog);

}  // namespace lambcast
