#include "sim/base/csv.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "sim/base/csv_reader.h"
#include "sim/base/error.h"

namespace lambcast::csv {
namespace {

// Characters that spreadsheets take as the start of a formula (OWASP, "CSV Injection").
constexpr std::string_view formula_starts = "=+-@\t\r";

// Returns whether the text begins like a formula. A single character such as "-" does not count.
bool starts_formula(std::string_view text) {
  return text.size() > 1 && formula_starts.find(text.front()) != std::string_view::npos;
}

bool is_number(std::string_view text) {
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  return status != std::errc::invalid_argument && end == text.data() + text.size();
}

void append_in_quotes(std::string_view text, std::string& to) {
  to += '"';
  for (const char c : text) {
    if (c == '"') to += '"';
    to += c;
  }
  to += '"';
}

void append_field(std::string_view text, std::string& to) {
  if ((starts_formula(text) && !is_number(text)) || is_guarded(text))
    append_in_quotes(fmt::format("'{}", text), to);
  else if (text.find_first_of(",\"\r\n") != std::string_view::npos)
    append_in_quotes(text, to);
  else
    to += text;
}

}  // namespace

bool is_guarded(std::string_view text) {
  if (!text.starts_with('\'')) return false;
  text.remove_prefix(std::min(text.find_first_not_of('\''), text.size()));
  return starts_formula(text) && !is_number(text);
}

std::string field(std::string_view text) {
  std::string of;
  append_field(text, of);
  return of;
}

std::string number(double value) {
  if (std::isnan(value)) return {};
  return fmt::format("{}", value);
}

std::string row(const std::vector<std::string>& fields) {
  Row row;
  for (const std::string& text : fields) row.text(text);
  return std::move(row).line();
}

void Row::begin_field() {
  if (std::exchange(begun_, true)) line_ += ',';
}

Row& Row::text(std::string_view text) {
  begin_field();
  append_field(text, line_);
  return *this;
}

Row& Row::number(double value) {
  begin_field();
  if (!std::isnan(value)) fmt::format_to(std::back_inserter(line_), FMT_COMPILE("{}"), value);
  return *this;
}

Row& Row::whole(std::int64_t value) {
  begin_field();
  const fmt::format_int digits(value);
  line_.append(digits.data(), digits.size());
  return *this;
}

Row& Row::empty(std::size_t fields) {
  if (fields == 0) return *this;
  begin_field();
  line_.append(fields - 1, ',');
  return *this;
}

std::size_t Table::column(std::string_view title) const {
  const auto found = std::find(header.begin(), header.end(), title);
  if (found == header.end()) {
    fail_input({name, 0, {}},
               fmt::format("has no column '{}'; its columns: {}", title, fmt::join(header, ", ")));
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
