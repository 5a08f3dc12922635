// Second moments of a matrix kept as the means of its rows and columns, of which Adafactor and CAME
// are made: for x_ij >= 0
//
//   row_i = b row_i + (1 - b) mean_j x_ij;   col_j = b col_j + (1 - b) mean_i x_ij
//   1 / sqrt(estimate of x_ij) = 1 / sqrt(row_i / mean(row)) / sqrt(col_j)
//
// Every rank keeps both whole vectors: they are thin.
// Source: Adafactor, arXiv:1804.04235, algorithm 4.
#pragma once

#include "kernels/reference/part.h"

namespace lambcast::reference {

struct FactoredMoment {
  std::vector<float> row, column;
  double row_mean = 0;

  explicit FactoredMoment(MatrixShape whole) : row(whole.rows), column(whole.columns) {}

  // `total` holds the sums of x over rows, then over columns. What has become of the columns is
  // then taken so many times.
  void update(const Sums& total, double beta, double column_copies = 1);
  float inverse_root(std::size_t i, std::size_t j) const;
};

// Room for the sums over rows and over columns, and where element k of the part belongs.
inline Sums factored_sums(const Part& part) { return Sums(part.whole.rows + part.whole.columns); }
inline void add_factored(Sums& sums, const Part& part, std::size_t k, double x) {
  sums[part.row(k)] += x;
  sums[part.whole.rows + part.column(k)] += x;
}

// How many ranks share a tensor that they divide evenly, of which each sums its own columns' state.
inline double ranks_of(const Part& part) {
  return part.size() == 0
             ? 1
             : static_cast<double>(part.whole.elements()) / static_cast<double>(part.size());
}

// Puts means over the part's own rows in the place of the columns' sums over all ranks, which is
// what Colossal-AI's distributed optimizers keep under ZeRO.
void keep_columns_local(Sums& total, const Sums& own, const Part& part);

}  // namespace lambcast::reference
