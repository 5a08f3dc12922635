// RFC 4180 comma-separated values: one header row, '.' as decimal, full round-trip precision, no
// comment lines. Sweeps append row by row, so that a killed run keeps what it finished.
//
// Spreadsheets run a cell that begins with = + - @ (or a tab or a carriage return) as a formula,
// and names come from anybody's files. Such a text, unless it is a number, is written with an
// apostrophe before it, as is a text that begins with apostrophes and goes on like that; `parse`
// and csv_reader.h take the apostrophe off again, so that every text survives the round trip.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lambcast::csv {

// Quotes a field if RFC 4180 requires it, and guards it against spreadsheets.
std::string field(std::string_view text);

// Whether a field as it stands in a file has the apostrophe of a guarded text.
bool is_guarded(std::string_view text);

// The shortest decimal text that reads back as exactly `value`; empty for NaN, which in our files
// means "does not apply".
std::string number(double value);

// One row without its line end.
std::string row(const std::vector<std::string>& fields);

// The same written field by field, for rows by the million: in place, with no text of each field.
class Row {
 public:
  explicit Row(std::size_t usual_bytes = 0) { line_.reserve(usual_bytes); }
  Row& text(std::string_view text);
  Row& number(double value);
  Row& number(const std::optional<double>& value) { return value ? number(*value) : empty(1); }
  Row& whole(std::int64_t value);
  Row& whole(const std::optional<std::int64_t>& value) { return value ? whole(*value) : empty(1); }
  Row& flag(bool value) { return text(value ? "true" : "false"); }
  Row& empty(std::size_t fields);
  std::string line() && { return std::move(line_); }

 private:
  void begin_field();
  std::string line_;
  bool begun_ = false;
};

// A parsed file. Lines that start with '#' before the header are kept apart: measurement files of
// others use them for their source.
struct Table {
  std::string name;  // for error messages
  std::vector<std::string> comments;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  // the line of each row

  // Index of a column; throws Error naming the file when it is absent.
  std::size_t column(std::string_view title) const;
  const std::string& text(std::size_t row, std::string_view title) const;
  // Throws Error naming file, line and column when the field is no finite number.
  double number(std::size_t row, std::string_view title) const;
  bool has(std::string_view title) const;
};

// Throws Error for a ragged row, an unclosed quote or a missing header.
Table parse(std::string_view text, std::string_view name);

}  // namespace lambcast::csv
