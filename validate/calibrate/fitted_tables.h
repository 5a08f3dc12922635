// The rows that a description was fitted to: `validate` never calls them unseen.
//
// `calibrate` writes the fingerprints of all rows into [calibration] as `fitted_tables`, one string
// per table. The descriptions that ship hold none: their tables ship too, and the source of a
// [calibration] tells which description it began as, under any name and after any edit.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "validate/measurement.h"

namespace lambcast::validate {

// Returns a hash of operation, ranks, size and four digits of the time, so that a rounded copy of a
// row is the same row. The origin of the table plays no part.
std::string fingerprint(const Measurement& table, const Row& row);

// Returns the fingerprints of all rows, separated by spaces.
std::string fingerprints(const Measurement& table);

struct FitOrigin {
  std::vector<std::string> rows;     // fingerprints
  std::vector<std::string> sources;  // of [calibration]
};

// Reads the origin of a cluster description, and of the preset from which it was calibrated.
FitOrigin fit_origin(std::string_view description, const std::string& name);

}  // namespace lambcast::validate
