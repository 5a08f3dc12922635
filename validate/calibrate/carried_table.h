// For tests: the tables of nccl-tests in the repository.
#pragma once

#include <string>

#include "sim/base/file.h"
#include "validate/measurement.h"

namespace lambcast::validate {

inline const std::string carried_tables = std::string(LAMBCAST_VALIDATE) + "/replay/collectives/";

inline Measurement carried(const std::string& name) {
  return read_measurement_csv(read_file(carried_tables + name), name);
}

}  // namespace lambcast::validate
