#include "kernels/reference/low_rank.h"

#include <cmath>

#include "sim/base/check.h"

namespace lambcast::reference {
namespace {

void check(MatrixShape shape, int rank, std::size_t m, std::size_t p, std::size_t q) {
  const std::size_t r = static_cast<std::size_t>(rank);
  LAMBCAST_CHECK(m == shape.elements() && p == shape.rows * r && q == shape.columns * r,
                 "{} x {} at rank {}: {}, {} and {} elements", shape.rows, shape.columns, rank, m,
                 p, q);
}

}  // namespace

void project(std::span<const float> m, MatrixShape shape, std::span<const float> q, int rank,
             std::span<float> p) {
  check(shape, rank, m.size(), p.size(), q.size());
  const std::size_t r = static_cast<std::size_t>(rank);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t k = 0; k < r; ++k) {
      double sum = 0;
      for (std::size_t j = 0; j < shape.columns; ++j) {
        sum += static_cast<double>(m[i * shape.columns + j]) * q[j * r + k];
      }
      p[i * r + k] = static_cast<float>(sum);
    }
  }
}

void orthonormalise(std::span<float> p, std::size_t rows, int rank) {
  const std::size_t r = static_cast<std::size_t>(rank);
  const auto dot = [&](std::size_t a, std::size_t b) {
    double sum = 0;
    for (std::size_t i = 0; i < rows; ++i) sum += static_cast<double>(p[i * r + a]) * p[i * r + b];
    return sum;
  };
  for (std::size_t k = 0; k < r; ++k) {
    const double before = dot(k, k);
    for (std::size_t other = 0; other < k; ++other) {
      const double along = dot(k, other);
      for (std::size_t i = 0; i < rows; ++i) {
        p[i * r + k] -= static_cast<float>(along * p[i * r + other]);
      }
    }
    // The remainder of a dependent column is rounding.
    const double squares = dot(k, k);
    const double inverse = squares > 1e-10 * before ? 1 / std::sqrt(squares) : 0;
    for (std::size_t i = 0; i < rows; ++i) {
      p[i * r + k] = static_cast<float>(p[i * r + k] * inverse);
    }
  }
}

void back_project(std::span<const float> m, MatrixShape shape, std::span<const float> p, int rank,
                  std::span<float> q) {
  check(shape, rank, m.size(), p.size(), q.size());
  const std::size_t r = static_cast<std::size_t>(rank);
  for (std::size_t j = 0; j < shape.columns; ++j) {
    for (std::size_t k = 0; k < r; ++k) {
      double sum = 0;
      for (std::size_t i = 0; i < shape.rows; ++i) {
        sum += static_cast<double>(m[i * shape.columns + j]) * p[i * r + k];
      }
      q[j * r + k] = static_cast<float>(sum);
    }
  }
}

void expand(std::span<const float> p, std::span<const float> q, MatrixShape shape, int rank,
            std::span<float> m, std::span<float> x) {
  check(shape, rank, m.size(), p.size(), q.size());
  const std::size_t r = static_cast<std::size_t>(rank);
  for (std::size_t i = 0; i < shape.rows; ++i) {
    for (std::size_t j = 0; j < shape.columns; ++j) {
      float sum = 0;
      for (std::size_t k = 0; k < r; ++k) sum += p[i * r + k] * q[j * r + k];
      x[i * shape.columns + j] = sum;
      m[i * shape.columns + j] -= sum;
    }
  }
}

}  // namespace lambcast::reference
