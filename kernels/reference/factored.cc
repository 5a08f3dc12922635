#include "kernels/reference/factored.h"

#include <cmath>

namespace lambcast::reference {

void FactoredMoment::update(const Sums& total, double beta, double column_copies) {
  const float b = static_cast<float>(beta), rest = static_cast<float>(1 - beta);
  const double rows = static_cast<double>(row.size()), columns = static_cast<double>(column.size());
  row_mean = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    row[i] = b * row[i] + rest * static_cast<float>(total[i] / columns);
    row_mean += static_cast<double>(row[i]) / rows;
  }
  for (std::size_t j = 0; j < column.size(); ++j) {
    column[j] = b * column[j] + rest * static_cast<float>(total[row.size() + j] / rows);
    column[j] *= static_cast<float>(column_copies);
  }
}

float FactoredMoment::inverse_root(std::size_t i, std::size_t j) const {
  return 1 / (std::sqrt(row[i] / static_cast<float>(row_mean)) * std::sqrt(column[j]));
}

void keep_columns_local(Sums& total, const Sums& own, const Part& part) {
  const std::size_t rows = part.whole.rows;
  std::vector<double> seen(part.whole.columns);
  for (std::size_t k = 0; k < part.size(); ++k) ++seen[part.column(k)];
  for (std::size_t j = 0; j < seen.size(); ++j) {
    if (seen[j] > 0) total[rows + j] = own[rows + j] * static_cast<double>(rows) / seen[j];
  }
}

}  // namespace lambcast::reference
