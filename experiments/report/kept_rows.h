// The rows that a report keeps: all of them while they take less than most_bytes, from then on
// those that the page shows (listing.h), which keep slices whole. Figures and break-evens are of
// what is kept, and go over it many times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "experiments/report/listing.h"
#include "experiments/report/point.h"

namespace lambcast::report {

class KeptRows {
 public:
  // Memory of the rows and of their steps: some 200,000 rows of most sweeps.
  static constexpr std::size_t most_bytes = std::size_t{64} << 20;

  // Allocates room for `most_rows` once: growing later would hold the rows twice.
  explicit KeptRows(std::size_t most_rows, std::size_t most = most_bytes);

  // Adds the row that `listing` read last; `listed`: the page shows it. `step_bytes` is the memory
  // of the steps of all rows so far.
  void add(Point point, bool listed, std::size_t step_bytes, const Listing& listing);

  // Returns the rows at the end; all() is true if none is missing.
  std::vector<Point> take(const Listing& listing);
  bool all() const { return all_; }

 private:
  void keep_listed(const Listing& listing);

  std::size_t most_;
  std::vector<Point> points_;
  std::vector<std::uint32_t> rows_;  // of the file, of each point
  bool all_ = true;
  std::size_t step_bytes_before_ = 0;  // of rows that are gone
};

}  // namespace lambcast::report
