#include "validate/calibrate/fitted_tables.h"

#include <fmt/format.h>

#include <algorithm>

#include "sim/base/fnv.h"
#include "sim/base/table.h"

namespace lambcast::validate {

std::string fingerprint(const Measurement& table) {
  std::vector<Row> rows = without_repeats({&table, 1}).front().rows;
  std::ranges::sort(rows, {}, [](const Row& row) { return row.size.value(); });
  std::string text = fmt::format("{} {}", name_of(table.operation), table.ranks);
  for (const Row& row : rows) text += fmt::format("\n{} {}", row.size.value(), row.time.ps());
  return "fnv1a64:" + fnv1a64(text);
}

std::vector<std::string> fitted_tables(std::string_view description, const std::string& name) {
  const Table calibration = Table::parse(description, name).table("calibration");
  std::vector<std::string> all;
  for (const Table& of : {calibration, calibration.table("preset")})
    for (std::string& table : of.get_or<std::vector<std::string>>("fitted_tables", {}))
      all.push_back(std::move(table));
  return all;
}

}  // namespace lambcast::validate
