#include "validate/calibrate/unmeasured_sizes.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {

std::vector<UnmeasuredSize> unmeasured_sizes(const Cluster& before,
                                             std::span<const Measurement> tables, Backend backend) {
  constexpr double from = 1024, to = 1073741824, step = 4;
  constexpr double normal_90 = 1.645;
  Bytes smallest(std::numeric_limits<double>::infinity()), largest;
  for (const Measurement& table : tables) {
    for (const Row& row : table.rows) {
      if (table.streams || !counts(table, row)) continue;
      smallest = std::min(smallest, row.size);
      largest = std::max(largest, row.size);
    }
  }
  const double alike = std::sqrt(std::count_if(
      tables.begin(), tables.end(), [](const Measurement& table) { return !table.streams; }));
  std::vector<UnmeasuredSize> sizes;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (tables[t].streams) continue;
    MeasuredSeries series = series_of(tables[t], before, backend);
    const Op op = series.message ? series.message->request.op : series.parts.front().op;
    const ProcessGroup group{series.ranks, series.gpus_per_node};
    for (Bytes size(from); size <= Bytes(to); size = size * step) {
      if (size * 2 > smallest && size < largest * 2) continue;
      auto [time, by] = forecast(series, size);
      by.rival.reset();  // a fit uses only the chosen algorithm
      const Duration expected = std::max(time, Duration::picoseconds(1));
      const CalibratedInterval interval =
          interval_of(before, backend, op, size, group, expected, by);
      sizes.push_back(
          {t, size, expected, std::log(interval.high / interval.low) / 2 / normal_90 * alike});
    }
  }
  return sizes;
}

}  // namespace lambcast::validate
