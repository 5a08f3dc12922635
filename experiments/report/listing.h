// The table of rows on the page: results.csv in units for people. A page of a hundred thousand rows
// of HTML does not open, so the rows stand in it as data, column by column, and the page's script
// shows as many as fit a screen; sorting and filtering go over all of them.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "sim/base/csv_reader.h"

namespace lambcast::report {

class Listing {
 public:
  // A page of so many rows is about 20 MB; the rest is in results.csv alone, and the page says so.
  static constexpr std::size_t most_rows = 100'000;

  // Of the columns in the header of `file`.
  explicit Listing(const csv::Reader& file);

  // The row that `file` stands at; only counted beyond most_rows.
  void add(const csv::Reader& file);

  std::string html() const;

 private:
  struct Column {
    std::size_t index;  // in the file
    std::string_view heading;
    double unit;  // what a number is divided by; 0 for text
    bool axis;    // shown only where its rows differ
    std::string first;
    bool filled = false, differs = false;
    std::unordered_map<std::string, std::size_t> places;  // of texts in `names`
    std::string names, cells;                             // JSON, without the brackets
  };
  bool shown(const Column& column) const { return column.axis ? column.differs : column.filled; }

  std::vector<Column> columns_;
  std::size_t rows_ = 0;
};

}  // namespace lambcast::report
