// For tests: parses the cells of a row of results.csv.
#pragma once

#include <string>
#include <vector>

#include "experiments/sweep/result_row.h"
#include "sim/base/csv.h"

namespace lambcast {

inline std::vector<std::string> cells_of(const std::string& row) {
  return csv::parse(csv::row(result_columns()) + "\n" + row + "\n", "a row").rows.at(0);
}

}  // namespace lambcast
