// Fuzzes tables: every accepted row has the number of fields of its header.
#include "sim/base/csv.h"
#include "sim/base/fuzz_target.h"

FUZZ_TARGET(csv, text) {
  using namespace lambcast;
  const csv::Table table = csv::parse(text, "table.csv");
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    if (table.rows[row].size() != table.header.size()) throw std::logic_error("a ragged row");
    for (const std::string& title : table.header) may_refuse([&] { table.number(row, title); });
  }
}
