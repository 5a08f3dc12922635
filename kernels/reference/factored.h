// Second moments of a matrix kept as the means of its rows and columns, as used by Adafactor and
// CAME: for x_ij >= 0
//
//   row_i = b row_i + (1 - b) mean_j x_ij;   col_j = b col_j + (1 - b) mean_i x_ij
//   1 / sqrt(estimate of x_ij) = 1 / sqrt(row_i / mean(row)) / sqrt(col_j)
//
// Every rank keeps both whole vectors: they are thin. Source: Adafactor, arXiv:1804.04235,
// algorithm 4.
#pragma once

#include "kernels/reference/part.h"

namespace lambcast::reference {

struct FactoredMoment {
  std::vector<float> row, column;
  double row_mean = 0;

  explicit FactoredMoment(MatrixShape whole) : row(whole.rows), column(whole.columns) {}

  // Updates the moment; `total` holds the sums of x over rows, then over columns. The columns are
  // then multiplied by column_copies.
  void update(const Sums& total, double beta, double column_copies = 1);
  float inverse_root(std::size_t i, std::size_t j) const;
};

// Return zeros for the sums over rows and over columns, and add element k of the part to them.
inline Sums factored_sums(const Part& part) { return Sums(part.whole.rows + part.whole.columns); }
inline void add_factored(Sums& sums, const Part& part, std::size_t k, double x) {
  sums[part.row(k)] += x;
  sums[part.whole.rows + part.column(k)] += x;
}

// Returns the number of ranks that share a tensor evenly, each with its own state of columns.
inline double ranks_of(const Part& part) {
  return part.size() == 0
             ? 1
             : static_cast<double>(part.whole.elements()) / static_cast<double>(part.size());
}

// Replaces the columns' sums over all ranks by means over the part's own rows, which Colossal-AI's
// distributed optimizers keep under ZeRO.
void keep_columns_local(Sums& total, const Sums& own, const Part& part);

}  // namespace lambcast::reference
