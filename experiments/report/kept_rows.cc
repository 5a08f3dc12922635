#include "experiments/report/kept_rows.h"

#include <algorithm>
#include <utility>

namespace lambcast::report {

KeptRows::KeptRows(std::size_t most_rows, std::size_t most) : most_(most) {
  points_.reserve(std::min(most_rows, most / sizeof(Point)) + 1);
}

void KeptRows::add(Point point, bool listed, std::size_t step_bytes, const Listing& listing) {
  if (!all_ && !listed) return;
  points_.push_back(std::move(point));
  rows_.push_back(static_cast<std::uint32_t>(listing.rows() - 1));
  if (points_.size() * sizeof(Point) + step_bytes - step_bytes_before_ <= most_) return;
  if (2 * points_.size() < 3 * listing.kept()) return;  // few rows would be dropped
  keep_listed(listing);
  step_bytes_before_ = step_bytes;
}

std::vector<Point> KeptRows::take(const Listing& listing) {
  if (!all_) keep_listed(listing);
  return std::move(points_);
}

// Keeps the points of listed rows. Both are in the order of the file, so one pass is enough.
void KeptRows::keep_listed(const Listing& listing) {
  all_ = false;
  auto listed = listing.kept_rows().begin();
  std::size_t kept = 0;
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    listed = std::find_if(listed, listing.kept_rows().end(),
                          [&](std::uint32_t row) { return row >= rows_[i]; });
    if (listed == listing.kept_rows().end()) break;
    if (*listed != rows_[i]) continue;
    rows_[kept] = rows_[i];
    if (kept < i) points_[kept] = std::move(points_[i]);
    ++kept;
  }
  rows_.resize(kept);
  points_.resize(kept);
  points_.shrink_to_fit();  // medians need the memory
}

}  // namespace lambcast::report
