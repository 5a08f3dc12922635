// The cells of a row of results.csv about its steps, shared by all rows with equal cells: a sweep
// has millions of them.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "experiments/report/point.h"
#include "sim/base/csv_reader.h"

namespace lambcast::report {

// The numbers of the row that `file` stands at. Rows that follow one another mostly say the same,
// which is not read again.
class NumberCells {
 public:
  // `file` is to outlive this.
  explicit NumberCells(const csv::Reader& file) : file_(file), last_(file.header().size()) {}

  // Absent where the cell is empty. Throws Error (usage) naming file, line and column for what is
  // no number that a forecast has.
  double read(std::size_t column, bool zero_allowed);

 private:
  struct Last {
    std::string text;
    double value = absent;
  };
  const csv::Reader& file_;
  std::vector<Last> last_;  // of each column
};

class StepCells {
 public:
  // Interval half-widths of the step time in whole percent, of the row's kind of step with the
  // widest interval; negative if there is none.
  struct Ends {
    double below_percent = -1, above_percent = -1;
  };

  // `file` must outlive this.
  explicit StepCells(const csv::Reader& file);

  // Reads the steps of the current row of the file.
  StepsByKind read();
  // Returns the ends of the intervals of `steps`, which were read from the same row.
  Ends ends(const StepsByKind& steps);

  // Memory of the steps read so far.
  std::size_t bytes() const { return bytes_; }

 private:
  struct Columns {
    StepKind kind;
    std::size_t time;
    std::vector<std::size_t> parts;
    std::optional<std::size_t> low, high;  // of the interval of its step time
    std::size_t first, last;               // of time and parts
    std::string said;                      // from the first to the last, by the row before
  };

  std::string text_of(const Columns& columns) const;
  StepsByKind parsed();

  const csv::Reader& file_;
  NumberCells numbers_;
  std::vector<Columns> kinds_;
  StepsByKind last_;
  std::unordered_map<std::string, StepsByKind> known_;
  std::size_t bytes_ = 0;
};

}  // namespace lambcast::report
