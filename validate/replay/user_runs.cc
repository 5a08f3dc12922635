#include "validate/replay/user_runs.h"

#include <fmt/format.h>

#include <algorithm>

#include "validate/replay/measured_quantity.h"

namespace lambcast {
namespace {

bool among(const std::vector<std::string>& words, const std::string& word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_key(const std::string& column) {
  return column.starts_with("model.") || column.starts_with("cluster.") ||
         among(what_if_keys(), column);
}

void check_columns(const csv::Table& table) {
  std::vector<std::string> known = what_if_keys();
  const std::vector<std::string> measured = measured_names();
  known.insert(known.end(), measured.begin(), measured.end());
  known.insert(known.end(), {"case", "peak_tflops"});
  bool any = false;
  for (const std::string& column : table.header) {
    if (!is_key(column) && !among(known, column))
      fail_unknown({table.name, 0, column}, "column", column, known);
    any = any || among(measured, column);
  }
  if (!any)
    fail_input({table.name, 0, {}}, "has no measured column",
               fmt::format("{}", fmt::join(measured, ", ")));
  if (table.has("mfu_pct") && !table.has("peak_tflops"))
    fail_input({table.name, 0, "mfu_pct"}, "needs a column peak_tflops, to which mfu_pct refers");
}

double peak_tflops(const csv::Table& table, std::size_t row) {
  const Where where{table.name, table.lines[row], "peak_tflops"};
  const double peak = table.number(row, where.key);
  if (!(peak > 0)) fail_input(where, "must be above zero");
  return peak;
}

}  // namespace

std::vector<SourceFigure> figures_of_runs(const csv::Table& table) {
  check_columns(table);
  std::vector<SourceFigure> figures;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    SourceFigure run;
    run.source = "runs";
    run.row = static_cast<int>(row) + 1;
    if (table.has("case")) run.name = table.text(row, "case");
    for (std::size_t column = 0; column < table.header.size(); ++column)
      if (is_key(table.header[column]) && !table.rows[row][column].empty())
        run.what_if[table.header[column]] = table.rows[row][column];
    const std::size_t before = figures.size();
    for (const MeasuredQuantity& of : measured_quantities()) {
      if (!table.has(of.name) || table.text(row, of.name).empty()) continue;
      SourceFigure& figure = figures.emplace_back(run);
      figure.quantity = of.quantity;
      figure.measured =
          parse_measured(of, table.text(row, of.name), {table.name, table.lines[row], of.name});
      if (of.name == "mfu_pct") figure.peak_tflops = peak_tflops(table, row);
    }
    if (figures.size() == before)
      fail_input({table.name, table.lines[row], {}}, "has no measured value");
  }
  return figures;
}

}  // namespace lambcast
