// The rows that a description was fitted to, which `validate` must not treat as unseen.
//
// `calibrate` writes the fingerprints of all rows into [calibration] as `fitted_tables`, one string
// per table. Shipped descriptions have no fingerprints, since their tables ship too. The source in
// a [calibration] names the description it was made from, even after renaming and editing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast::validate {

// Returns a hash of operation, ranks, size and four digits of the time, so that a rounded copy
// counts as the same row. The origin of the table does not matter.
std::string fingerprint(const Measurement& table, const Row& row);

// Returns the fingerprints of all rows, separated by spaces.
std::string fingerprints(const Measurement& table);

struct FitOrigin {
  std::vector<std::string> rows;     // fingerprints
  std::vector<std::string> sources;  // sources named in [calibration]
};

// Reads the origin of a cluster description, and of the preset from which it was calibrated.
FitOrigin fit_origin(std::string_view description, const std::string& name);

}  // namespace lambcast::validate
