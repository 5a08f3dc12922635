// The rows that a report keeps. All rows are kept while they take less than most_bytes; beyond it,
// only the rows that the page shows (listing.h), which form complete slices. Figures and
// break-evens use the kept rows and traverse them many times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiments/report/listing.h"
#include "experiments/report/point.h"

namespace lambcast::report {

class KeptRows {
 public:
  // Limit of the memory of rows and their steps; some 200,000 rows of most sweeps.
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;

  // Allocates room for `most_rows` once: growing later would hold the rows twice.
  explicit KeptRows(std::size_t most_rows, std::size_t most = most_bytes);

  // Adds the row that `listing` read last. `listed`: the page shows it. `step_bytes`: memory of the
  // steps of all rows so far.
  void add(Point point, bool listed, std::size_t step_bytes, const Listing& listing);

  // Returns the kept rows at the end; all() is true if none is missing.
  std::vector<Point> take(const Listing& listing);
  bool all() const { return all_; }

 private:
  void keep_listed(const Listing& listing);

  std::size_t most_;
  std::vector<Point> points_;
  std::vector<std::uint32_t> rows_;  // row in the file of each point
  bool all_ = true;
  std::size_t step_bytes_before_ = 0;  // memory of the steps of dropped rows
};

}  // namespace lambcast::report
