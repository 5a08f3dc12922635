// The cells of a row of results.csv about its steps. Rows with equal cells share them, since a
// sweep has millions of rows.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiments/report/point.h"
#include "sim/base/csv_reader.h"

namespace lambcast::report {

// The numbers of the current row of `file`. Consecutive rows mostly have the same text, which is
// then not parsed again.
class NumberCells {
 public:
  // `file` must outlive this object.
  explicit NumberCells(const csv::Reader& file) : file_(file), last_(file.header().size()) {}

  // Returns the number, or `absent` for an empty cell. Throws Error (usage) naming file, line and
  // column for an invalid number.
  double read(std::size_t column, bool zero_allowed);

 private:
  struct Last {
    std::string text;
    double value = absent;
  };
  const csv::Reader& file_;
  std::vector<Last> last_;  // last text and number of each column
};

class StepCells {
 public:
  // Interval half-widths of the step time in whole percent, for the row's kind of step with the
  // widest interval; negative if there is none.
  struct Ends {
    double below_percent = -1, above_percent = -1;
  };

  // `file` must outlive this object.
  explicit StepCells(const csv::Reader& file);

  // Reads the steps of the current row of the file.
  StepsByKind read();
  // Returns the interval half-widths of `steps`, which were read from the same row.
  Ends ends(const StepsByKind& steps);

  // Returns the memory of the steps read so far.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Columns {
    StepKind kind;
    std::size_t time;
    std::vector<std::size_t> parts;
    std::optional<std::size_t> low, high;  // columns of the interval of its step time
    std::size_t first, last;               // range of the columns of its time and parts
    std::string said;                      // text of that range in the previous row
    std::string ends;                      // text of `low` and `high` in the previous row
  };

  std::string text_of(const Columns& columns) const;
  std::string ends_of(const Columns& columns) const;
  StepsByKind parsed();

  const csv::Reader& file_;
  NumberCells numbers_;
  std::vector<Columns> kinds_;
  StepsByKind last_;
  std::unordered_map<std::string, StepsByKind> known_;
  std::size_t bytes_ = 0;
};

}  // namespace lambcast::report
