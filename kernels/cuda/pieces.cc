#include <algorithm>

#include "kernels/cuda/adam.h"
#include "kernels/cuda/lamb.h"

namespace lambcast::cuda {

PieceTable cut_into_pieces(const TensorLayout& tensors) {
  // Large enough to hide the start of a piece, and small enough for an even last wave of blocks:
  // BERT-Large has 20 thousand pieces for some thousand blocks.
  constexpr std::size_t piece_elements = 16384;
  PieceTable table;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    table.first_piece.push_back(static_cast<int>(table.pieces.size()));
    const std::size_t end = tensors.offsets[t + 1];
    for (std::size_t begin = tensors.offsets[t]; begin < end;) {
      // Cuts are at multiples of the piece size in the flat buffer, which keeps them aligned.
      const std::size_t cut = std::min(end, (begin / piece_elements + 1) * piece_elements);
      table.pieces.push_back({begin, cut, static_cast<int>(t)});
      begin = cut;
    }
  }
  table.first_piece.push_back(static_cast<int>(table.pieces.size()));
  return table;
}

std::vector<GroupRun> group_runs(const TensorLayout& tensors,
                                 std::span<const ParameterGroup> group_of) {
  std::vector<GroupRun> runs;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const std::size_t end = tensors.offsets[t + 1];
    if (tensors.size(t) == 0) continue;
    const bool alike = !runs.empty() && runs.back().group == group_of[t];
    if (alike)
      runs.back().end = end;
    else
      runs.push_back({end, group_of[t]});
  }
  return runs;
}

}  // namespace lambcast::cuda
