// LAMB's state per tensor and per piece in device memory: all members of LambState except the flat
// buffers.
#pragma once

#include <span>

#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/lamb.h"

namespace lambcast::cuda {

struct LambTensors {
  PieceTable table;
  DeviceBuffer<Piece> pieces;
  DeviceBuffer<int> first_piece;
  DeviceBuffer<float> running_average, running_weight;  // zero before the first step
  DeviceBuffer<float> trust_ratio, step_length;
  DeviceBuffer<double> workspace;
  DeviceBuffer<ParameterGroup> groups;

  // Allocates on the current device. group_of is empty or has one entry per tensor.
  explicit LambTensors(const TensorLayout& tensors, std::span<const ParameterGroup> group_of = {})
      : table(cut_into_pieces(tensors)),
        pieces(std::span<const Piece>(table.pieces)),
        first_piece(std::span<const int>(table.first_piece)),
        running_average(tensors.tensors()),
        running_weight(tensors.tensors()),
        trust_ratio(tensors.tensors()),
        step_length(tensors.tensors()),
        workspace(lamb_workspace(table)),
        groups(group_of) {}

  // Returns the state over weights, momentum and variance in device memory, which have
  // tensors.elements() floats each.
  LambState state(float* p, float* m, float* v, HalfPointer half_p = {},
                  const double* lr = nullptr) const {
    return {.pieces = pieces.data(),
            .first_piece = first_piece.data(),
            .piece_count = static_cast<int>(table.pieces.size()),
            .tensors = static_cast<int>(trust_ratio.size()),
            .p = p,
            .m = m,
            .v = v,
            .half_p = half_p,
            .running_average = running_average.data(),
            .running_weight = running_weight.data(),
            .trust_ratio = trust_ratio.data(),
            .step_length = step_length.data(),
            .workspace = workspace.data(),
            .groups = groups.data(),
            .lr = lr};
  }
};

}  // namespace lambcast::cuda
