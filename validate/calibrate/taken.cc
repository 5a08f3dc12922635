#include "validate/calibrate/taken.h"

#include <set>

#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {

std::vector<TakenRow> taken_by(std::span<const Measurement> tables, const Cluster& cluster,
                               Backend backend) {
  std::vector<TakenRow> rows;
  if (is_mpi(backend)) return rows;
  for (const Measurement& table : tables) {
    if (table.streams) continue;
    MeasuredSeries series = series_of(table, cluster, backend);
    for (const Row& row : table.rows) {
      if (!counts(table, row)) continue;
      const RunBy by = forecast(series, row.size).by;
      rows.push_back({row.size, std::string(by.algorithm), std::string(by.protocol)});
    }
  }
  return rows;
}

std::vector<std::string> algorithms_of(std::span<const TakenRow> rows, double from, double below) {
  std::set<std::string> names;
  for (const TakenRow& row : rows)
    if (row.size.value() >= from && row.size.value() < below) names.insert(row.algorithm);
  return {names.begin(), names.end()};
}

std::vector<std::string> protocols_of(std::span<const TakenRow> rows) {
  std::set<std::string> names;
  for (const TakenRow& row : rows) names.insert(row.protocol);
  return {names.begin(), names.end()};
}

}  // namespace lambcast::validate
