#include "kernels/emulated_world/exchange/power_sgd.h"

#include <algorithm>

#include "kernels/emulated_world/exchange/plain_allreduce.h"
#include "kernels/reference/sparse.h"

namespace lambcast::emulated {
namespace {

using Flat = std::vector<float>;

Wire average_all(std::vector<Flat>& all) {
  return plain_allreduce(std::vector<std::span<float>>(all.begin(), all.end()), WireFormat::fp32);
}

// Returns values in [-0.5, 0.5) that depend only on the arguments.
Flat drawn(std::size_t count, std::uint64_t seed) {
  Flat values(count);
  for (std::size_t e = 0; e < count; ++e) {
    values[e] = static_cast<float>(reference::random_index(seed, e, count, count << 20) & 0xfffff) *
                    0x1p-20f -
                0.5f;
  }
  return values;
}

// Compresses one matrix of all ranks: `c` becomes the error feedback; returns the matrix that all
// ranks receive.
Flat compress(PowerSgd& o, std::size_t index, std::vector<std::span<float>>& c, Wire& wire) {
  const reference::MatrixShape shape = o.matrices[index].shape;
  const std::size_t n = c.size(), r = static_cast<std::size_t>(o.rank);
  Flat& q = o.q[index];
  if (q.empty() || !o.warm_start) {
    q = drawn(shape.columns * r, o.seed + o.calls * o.matrices.size() + index);
  }
  std::vector<Flat> p(n, Flat(shape.rows * r)), next(n, Flat(shape.columns * r));
  for (int turn = 0; turn < o.iterations; ++turn) {
    for (std::size_t i = 0; i < n; ++i) reference::project(c[i], shape, q, o.rank, p[i]);
    wire += average_all(p);
    for (std::size_t i = 0; i < n; ++i) {
      reference::orthonormalise(p[i], shape.rows, o.rank);
      reference::back_project(c[i], shape, p[i], o.rank, next[i]);
    }
    wire += average_all(next);
    q = next[0];
  }
  Flat x(shape.elements());
  for (std::size_t i = 0; i < n; ++i) {
    reference::expand(p[i], q, shape, o.rank, c[i], x);
  }
  return x;
}

}  // namespace

Wire average(PowerSgd& o, Buffers buffers) {
  check(buffers);
  const std::size_t n = buffers.size(), elements = buffers[0].size();
  Wire wire{std::vector<std::size_t>(n)};
  if (n == 1) return wire;
  std::vector<Flat> c = compensated(buffers, o.owed, elements);
  o.q.resize(o.matrices.size());
  // Elements outside matrices are vectors, which are sent as one uncompressed buffer.
  std::vector<bool> in_matrix(elements);
  for (std::size_t i = 0; i < o.matrices.size(); ++i) {
    const auto& matrix = o.matrices[i];
    std::vector<std::span<float>> parts;
    for (auto& flat : c) {
      parts.push_back(std::span(flat).subspan(matrix.begin, matrix.shape.elements()));
    }
    const Flat x = compress(o, i, parts, wire);
    for (std::size_t r = 0; r < n; ++r) {
      std::copy(parts[r].begin(), parts[r].end(),
                o.owed[r].begin() + static_cast<std::ptrdiff_t>(matrix.begin));
      std::copy(x.begin(), x.end(), buffers[r].begin() + static_cast<std::ptrdiff_t>(matrix.begin));
    }
    std::fill_n(in_matrix.begin() + static_cast<std::ptrdiff_t>(matrix.begin),
                matrix.shape.elements(), true);
  }
  std::vector<Flat> vectors(n);
  for (std::size_t e = 0; e < elements; ++e) {
    for (std::size_t r = 0; r < n && !in_matrix[e]; ++r) vectors[r].push_back(buffers[r][e]);
  }
  if (!vectors[0].empty()) wire += average_all(vectors);
  for (std::size_t e = 0, next = 0; e < elements; ++e) {
    if (in_matrix[e]) continue;
    for (std::size_t r = 0; r < n; ++r) buffers[r][e] = vectors[r][next];
    ++next;
  }
  ++o.calls;
  return wire;
}

}  // namespace lambcast::emulated
