// The rows of results.csv for the page, in units for people and column by column. The page's script
// can slice, sort and draw all of them. An HTML table of 100,000 rows does not open. As data it is
// some 10 MB, and the script shows the rows that fit a screen.
//
// For more rows or bytes the page holds a part with complete slices: every second (fourth, ...)
// value of the key with the most values. The page states so. results.csv has all rows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/report/column.h"
#include "sim/base/csv_reader.h"

namespace lambcast::report {

class Listing {
 public:
  static constexpr std::size_t most_rows = 100'000;
  // Limit of the cells of all rows, with which a page stays below 12 MB.
  static constexpr std::size_t most_cell_bytes = 10'000'000;
  // Keys that only `settings` names have a column each, up to this many.
  static constexpr std::size_t most_settings = 24;

  // Takes the columns from the header of `file`.
  explicit Listing(const csv::Reader& file);

  // Adds the current row of `file`; returns whether it is kept so far.
  bool add(const csv::Reader& file);

  // Rows that the page holds, ascending; their number; the number of all rows.
  const std::vector<std::uint32_t>& kept_rows() const { return kept_; }
  std::size_t kept() const { return kept_.size(); }
  std::size_t rows() const { return rows_; }
  // "one in 4 values of steps": which rows were kept; empty if all were.
  std::string thinning() const;

  // "rows": kept, "columns": [...]: members of a JSON object, each column as Column::append_json
  // has it.
  void append_json(std::string& out) const;

 private:
  // Source of a column of the page.
  struct Source {
    enum class From { file, verdict, setting, warmup } from = From::file;
    std::size_t index = 0;  // in the file
    bool thins = false;     // values of it may go
    std::uint32_t stride = 1;
    std::uint32_t place = 0;  // in the row being added
  };

  void add_column(Column column, Source source);
  std::size_t setting_column(std::string_view key);
  void read_settings(std::string_view settings);
  std::uint32_t warmup_place(Column& column, std::string_view freeze, std::string_view steps);
  bool is_kept(std::size_t row) const;
  std::size_t row_bytes() const;
  void thin();

  std::vector<Column> columns_;
  std::vector<Source> sources_;                           // of each column
  std::optional<std::size_t> settings_, freeze_, steps_;  // columns of the file
  std::size_t fixed_ = 0;  // columns that do not come from settings: the first ones
  std::vector<std::size_t> setting_columns_;
  std::vector<std::size_t> named_;    // columns of texts that do not come from settings
  std::vector<std::size_t> thinned_;  // columns with a stride
  std::string said_settings_, said_freeze_, said_steps_;  // by the row before
  std::uint32_t warmup_place_ = 0;                        // of its freeze_step and steps
  std::size_t rows_ = 0;
  std::size_t row_stride_ = 1;       // of rows, where no key is left to thin
  std::vector<std::uint32_t> kept_;  // rows of the file
};

}  // namespace lambcast::report
