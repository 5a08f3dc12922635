// CPU reference of PowerSGD on one matrix M of h rows and w columns, row by row in memory, at rank
// r:
//
//   P = M Q;  mean of P over the ranks, made orthonormal;  Q = M' P;  mean of Q;  sent: P Q'
//
// This is one step of subspace iteration from the Q of the previous call (warm start). M is the
// gradient plus the error feedback, whose next value is M - P Q'. P is h x r and Q w x r, also row
// by row. Sums are computed in double and rounded once. A column of P that depends on previous ones
// becomes zero.
//
// Source: PowerSGD, arXiv:1905.13727, algorithms 1 and 2.
#pragma once

#include <cstddef>
#include <span>

namespace lambcast::reference {

struct MatrixShape {
  std::size_t rows = 0, columns = 0;
  std::size_t elements() const { return rows * columns; }
};

void project(std::span<const float> m, MatrixShape shape, std::span<const float> q, int rank,
             std::span<float> p);
void orthonormalise(std::span<float> p, std::size_t rows, int rank);
void back_project(std::span<const float> m, MatrixShape shape, std::span<const float> p, int rank,
                  std::span<float> q);
// x = P Q', and m -= x.
void expand(std::span<const float> p, std::span<const float> q, MatrixShape shape, int rank,
            std::span<float> m, std::span<float> x);

}  // namespace lambcast::reference
