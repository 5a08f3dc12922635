// Work of the blocks of a launch over tensors of many shapes: a table of pieces, each the i-th one
// of a tensor. The kernel defines a piece: rows, tiles or segments of elements.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda/device_buffer.h"

namespace lambcast::cuda {

struct TensorPiece {
  int tensor = 0, index = 0;
};

// A table in device memory.
struct TensorPieces {
  const TensorPiece* at = nullptr;
  int count = 0;
};

// Builds the table on the current device; `count` returns the number of pieces of a tensor.
template <typename Tensor>
DeviceBuffer<TensorPiece> pieces_of(std::span<const Tensor> tensors,
                                    std::size_t (*count)(const Tensor&)) {
  std::vector<TensorPiece> pieces;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    for (std::size_t i = 0; i < count(tensors[t]); ++i) {
      pieces.push_back({static_cast<int>(t), static_cast<int>(i)});
    }
  }
  return DeviceBuffer<TensorPiece>(std::span<const TensorPiece>(pieces));
}

inline TensorPieces list_of(const DeviceBuffer<TensorPiece>& pieces) {
  return {pieces.data(), static_cast<int>(pieces.size())};
}

}  // namespace lambcast::cuda
