#include "sim/base/csv.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "sim/base/error.h"

namespace lambcast::csv {
namespace {

// Reads one record from `text` at `position`, moving past its line end and counting lines.
std::vector<std::string> read_record(std::string_view text, std::size_t& position, int& line,
                                     std::string_view name) {
  std::vector<std::string> fields(1);
  const int first_line = line;
  bool quoted = false;
  while (position < text.size()) {
    const char c = text[position++];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (position < text.size() && text[position] == '"') {
        fields.back() += text[position++];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      return fields;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  if (quoted) fail_input({std::string(name), first_line, {}}, "a quoted field is never closed");
  ++line;
  return fields;
}

}  // namespace

std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
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
  Table table;
  table.name = name;
  std::size_t position = 0;
  int line = 1;
  while (position < text.size()) {
    const int row_line = line;
    if (table.header.empty() && text[position] == '#') {
      const std::size_t end = std::min(text.find('\n', position), text.size());
      table.comments.emplace_back(text.substr(position, end - position));
      position = std::min(end + 1, text.size());
      ++line;
      continue;
    }
    std::vector<std::string> fields = read_record(text, position, line, name);
    if (fields.size() == 1 && fields[0].empty()) continue;
    if (table.header.empty()) {
      table.header = std::move(fields);
      continue;
    }
    if (fields.size() != table.header.size()) {
      fail_input(
          {std::string(name), row_line, {}},
          fmt::format("has {} fields where the header has {}", fields.size(), table.header.size()));
    }
    table.rows.push_back(std::move(fields));
    table.lines.push_back(row_line);
  }
  if (table.header.empty()) fail_input({std::string(name), 0, {}}, "has no header row");
  return table;
}

}  // namespace lambcast::csv
