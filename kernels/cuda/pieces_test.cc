#include <catch2/catch.hpp>

#include "kernels/cuda/lamb.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("pieces cover every element of every tensor once, in order, with aligned cuts") {
  const std::vector<std::size_t> sizes{5, 0, 16384 * 3 + 1, 2, 100000};
  const TensorLayout tensors = tensor_layout(sizes);
  const PieceTable table = cut_into_pieces(tensors);
  REQUIRE(table.first_piece.size() == sizes.size() + 1);
  std::size_t next = 0;
  for (std::size_t t = 0; t < sizes.size(); ++t) {
    for (int k = table.first_piece[t]; k < table.first_piece[t + 1]; ++k) {
      const Piece& piece = table.pieces[static_cast<std::size_t>(k)];
      CHECK(piece.tensor == static_cast<int>(t));
      CHECK(piece.begin == next);
      CHECK(piece.end > piece.begin);
      CHECK((piece.begin == tensors.offsets[t] || piece.begin % 4 == 0));
      next = piece.end;
    }
    CHECK(next == tensors.offsets[t + 1]);
  }
  CHECK(table.first_piece[1] == table.first_piece[2]);  // the empty tensor has none
  CHECK(lamb_workspace(table) == 3 * table.pieces.size());
  CHECK(cut_into_pieces({}).pieces.empty());
}
