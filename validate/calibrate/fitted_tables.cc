#include "validate/calibrate/fitted_tables.h"

#include <fmt/format.h>

#include <sstream>

#include "sim/base/fnv.h"
#include "sim/base/table.h"

namespace lambcast::validate {

std::string fingerprint(const Measurement& table, const Row& row) {
  constexpr std::size_t digits = 8;  // enough to distinguish some thousand rows
  return fnv1a64(fmt::format("{} {} {} {:.4g}", name_of(table.operation), table.ranks,
                             row.size.value(), row.time.us()))
      .substr(0, digits);
}

std::string fingerprints(const Measurement& table) {
  std::string all;
  for (const Row& row : table.rows) {
    if (!all.empty()) all += ' ';
    all += fingerprint(table, row);
  }
  return all;
}

FitOrigin fit_origin(std::string_view description, const std::string& name) {
  const Table calibration = Table::parse(description, name).table("calibration");
  FitOrigin origin;
  for (const Table& of : {calibration, calibration.table("preset")}) {
    for (const std::string& table : of.get_or<std::vector<std::string>>("fitted_tables", {})) {
      std::istringstream rows(table);
      for (std::string row; rows >> row;) origin.rows.push_back(row);
    }
    if (const auto source = of.find<std::string>("source")) origin.sources.push_back(*source);
  }
  return origin;
}

}  // namespace lambcast::validate
