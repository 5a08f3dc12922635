#include "sim/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "sim/base/csv_reader.h"
#include "sim/base/error.h"

namespace lambcast::csv {
namespace {

// What spreadsheets take as the start of a formula (OWASP, "CSV Injection").
constexpr std::string_view formula_starts = "=+-@\t\r";

// A sign on its own is none.
bool starts_formula(std::string_view text) {
  return text.size() > 1 && formula_starts.find(text.front()) != std::string_view::npos;
}

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status != std::errc::invalid_argument && end == text.data() + text.size();
}

std::string in_quotes(std::string_view text) {
  std::string all = "\"";
  for (const char c : text) {
    if (c == '"') all += '"';
    all += c;
  }
  return all + '"';
}

}  // namespace

bool is_guarded(std::string_view text) {
  if (!text.starts_with('\'')) return false;
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  return starts_formula(text) && !is_number(text);
}

std::string field(std::string_view text) {
  if ((starts_formula(text) && !is_number(text)) || is_guarded(text))
    return in_quotes(fmt::format("'{}", text));
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  return in_quotes(text);
}

std::string number(double value) {
  if (std::isnan(value)) return {};
  return fmt::format("{}", value);
}

std::string row(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& text : fields) {
    if (&text != fields.data()) line += ',';
    line += field(text);
  }
  return line;
}

std::size_t Table::column(std::string_view title) const {
  const auto found = std::find(header.begin(), header.end(), title);
  if (found == header.end()) {
    fail_input({name, 0, {}}, fmt::format("has no column '{}'", title),
               fmt::format("{}", fmt::join(header, ", ")));
  }
  return static_cast<std::size_t>(found - header.begin());
}

bool Table::has(std::string_view title) const {
  return std::find(header.begin(), header.end(), title) != header.end();
}

const std::string& Table::text(std::size_t row, std::string_view title) const {
  return rows.at(row).at(column(title));
}

double Table::number(std::size_t row, std::string_view title) const {
  const std::string& value = text(row, title);
  double parsed = 0;
  const auto [end, status] = std::from_chars(value.data(), value.data() + value.size(), parsed);
  if (status != std::errc{} || end != value.data() + value.size() || !std::isfinite(parsed)) {
    fail_input({name, lines.at(row), std::string(title)},
               fmt::format("'{}' is not a finite number", value));
  }
  return parsed;
}

Table parse(std::string_view text, std::string_view name) {
  Reader reader = Reader::of_text(text, std::string(name));
  Table table;
  table.name = name;
  table.comments = reader.comments();
  table.header = reader.header();
  while (reader.next()) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.reserve(table.header.size());
    for (std::size_t i = 0; i < table.header.size(); ++i) row.emplace_back(reader.text(i));
    table.lines.push_back(reader.line());
  }
  return table;
}

}  // namespace lambcast::csv
