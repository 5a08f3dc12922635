// The rows of results.csv for the page, in display units and column by column. The page's script
// can filter, sort and draw all of them. An HTML table of 100,000 rows does not open; as data they
// take some 10 MB, and the script shows the rows that fit a screen.
//
// If there are more rows or bytes, the page contains a part with complete slices: every second
// (fourth, ...) value of the key with the most values. The page states so. results.csv has all
// rows.
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
  // Limit of the cells of all rows in bytes. It keeps a page below 12 MB.
  static constexpr std::size_t most_cell_bytes = 10'000'000;
  // Limit of the keys in `settings` that get a column each.
  static constexpr std::size_t most_settings = 24;

  // Takes the columns from the header of `file`.
  explicit Listing(const csv::Reader& file);

  // Adds the current row of `file`; returns whether it is kept so far.
  bool add(const csv::Reader& file);

  // Return the rows that the page contains (ascending), their number, and the number of all rows.
  const std::vector<std::uint32_t>& kept_rows() const { return kept_; }
  std::size_t kept() const { return kept_.size(); }
  std::size_t rows() const { return rows_; }
  // Describes the kept rows: "one in 4 values of steps"; empty if all were kept.
  std::string thinning() const;

  // Appends the members "rows": kept, "columns": [...] of a JSON object, each column as written by
  // Column::append_json.
  void append_json(std::string& out) const;

 private:
  // Source of a column of the page.
  struct Source {
    enum class From { file, verdict, setting, warmup } from = From::file;
    std::size_t index = 0;  // column of the file
    bool thins = false;     // some of its values may be dropped
    std::uint32_t stride = 1;
    std::uint32_t place = 0;  // index in the row being added
  };

  void add_column(Column column, Source source);
  std::size_t setting_column(std::string_view key);
  void read_settings(std::string_view settings);
  std::uint32_t warmup_place(Column& column, std::string_view freeze, std::string_view steps);
  bool is_kept(std::size_t row) const;
  std::size_t row_bytes() const;
  void thin();

  std::vector<Column> columns_;
  std::vector<Source> sources_;                           // one per column
  std::optional<std::size_t> settings_, freeze_, steps_;  // columns of the file
  std::size_t fixed_ = 0;  // number of columns that do not come from settings; these come first
  std::vector<std::size_t> setting_columns_;
  std::vector<std::size_t> named_;    // text columns that do not come from settings
  std::vector<std::size_t> thinned_;  // columns of which only every n-th value is kept
  std::string said_settings_, said_freeze_, said_steps_;  // values in the previous row
  std::uint32_t warmup_place_ = 0;                        // index for that freeze_step and steps
  std::size_t rows_ = 0;
  std::size_t row_stride_ = 1;       // stride of rows, once no key is left to thin
  std::vector<std::uint32_t> kept_;  // rows of the file
};

}  // namespace lambcast::report
