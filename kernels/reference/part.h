// A rank's part of a tensor, and how optimizers that need statistics of whole tensors make a step
// if every rank has only a part.
//
// A tensor is a matrix of `rows` and `columns`, row by row (a vector is one row). A tensor-parallel
// rank holds a rectangle of it, also row by row; a ZeRO rank holds a segment [begin, end) of the
// rectangle, at any place in rows. A step has a few rounds: every rank sums the contributions of
// its elements to a thin vector, the vectors are summed over the ranks that share the tensor, and
// each rank takes the total. Then each rank updates its elements. With one part, the whole tensor,
// this is the unsharded optimizer in the same code, so every legal sharding makes the same step up
// to rounding.
//
// A rule of an optimizer (lars.h, sharded_lamb.h, adafactor.h, came.h, galore.h, muon.h) has
//
//   State state(const Part&)                              state that a rank keeps
//   int rounds(step)
//   Sums sums(round, View, State&, step)                  contributions of its elements
//   void take(round, View, State&, const Sums&, step)     the total over the ranks
//   void apply(View, State&, step)                        moves the weights
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/reference/low_rank.h"

namespace lambcast::reference {

using Sums = std::vector<double>;

struct Part {
  MatrixShape whole;
  std::size_t first_row = 0, first_column = 0;  // start of the rectangle
  std::size_t columns = 0;                      // columns of the rectangle
  std::size_t begin = 0, end = 0;               // the segment of the rectangle

  std::size_t size() const { return end - begin; }
  std::size_t row(std::size_t k) const { return first_row + (begin + k) / columns; }
  std::size_t column(std::size_t k) const { return first_column + (begin + k) % columns; }
};

inline Part whole_part(MatrixShape shape) {
  return {shape, 0, 0, shape.columns, 0, shape.elements()};
}

struct View {
  const Part& part;
  std::span<float> p;
  std::span<const float> g;
};

}  // namespace lambcast::reference
