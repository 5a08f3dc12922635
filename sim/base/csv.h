// RFC 4180 comma-separated values: one header row, '.' as the decimal point, full round-trip
// precision, no comment lines. Sweeps append row by row, so that a killed run keeps its finished
// rows.
//
// Spreadsheets run a cell that begins with = + - @ (or a tab or a carriage return) as a formula,
// and names may come from any file. Such a text, unless it is a number, is written with an
// apostrophe in front of it. So is a text that is already of this form: one or more apostrophes,
// then a formula. `parse` and csv_reader.h remove that apostrophe, so that every text survives the
// round trip.
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

// Returns whether a field, as written in a file, has the apostrophe of a guarded text.
bool is_guarded(std::string_view text);

// Returns the shortest decimal text that reads back as exactly `value`. The text is empty for NaN,
// which in our files means "does not apply".
std::string number(double value);

// Returns one row without its line end.
std::string row(const std::vector<std::string>& fields);

// Builds one row field by field, without a string for each field: for millions of rows.
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

// A parsed file. Lines that start with '#' before the header are kept as comments: other tools'
// measurement files state their source there.
struct Table {
  std::string name;  // for error messages
  std::vector<std::string> comments;
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;
  std::vector<int> lines;  // line number of each row

  // Returns the index of a column. Throws Error naming the file if the column is absent.
  std::size_t column(std::string_view title) const;
  const std::string& text(std::size_t row, std::string_view title) const;
  // Throws Error naming file, line and column if the field is not a finite number.
  double number(std::size_t row, std::string_view title) const;
  bool has(std::string_view title) const;
};

// Throws Error for a ragged row, an unclosed quote or a missing header.
Table parse(std::string_view text, std::string_view name);

}  // namespace lambcast::csv
