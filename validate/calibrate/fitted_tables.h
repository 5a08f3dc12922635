// The tables that a description was fitted to, by fingerprint: `calibrate` writes them into
// [calibration] as `fitted_tables`, and `validate` never calls such a table unseen.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast::validate {

// Hash of operation, ranks, sizes and times. Repeated sizes count as their median, and the order of
// rows plays no part. Where the table came from and what its header says besides play none either.
std::string fingerprint(const Measurement& table);

// The fingerprints that a cluster description holds, those of the preset it started from included.
std::vector<std::string> fitted_tables(std::string_view description, const std::string& name);

}  // namespace lambcast::validate
