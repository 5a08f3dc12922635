#include "models/training/block_kernels.h"

namespace lambcast {

BlockKernels::BlockKernels(const BlockWork& of, const ExpertPlan* with, const GpuRates& rates)
    : work(of),
      experts(with),
      forward(block_forward(of, rates)),
      backward(block_backward(of, rates)) {}

Duration BlockKernels::product(std::string_view name, Pass pass) const {
  Duration sum;
  for (const Piece& piece : pieces_of(pass))
    if (piece.name == name && piece.pass == pass) sum += piece.duration;
  return sum;
}

Duration BlockKernels::attention_core(Pass pass) const {
  Duration sum;
  for (const Piece& piece : pieces_of(pass))
    if (piece.kind == PieceKind::attention && piece.pass == pass) sum += piece.duration;
  return sum;
}

std::vector<std::pair<const char*, const char*>> BlockKernels::pairs() const {
  std::vector<std::pair<const char*, const char*>> pairs{{"query-key-value", "projection"}};
  if (experts == nullptr || work.experts->shared_ffn > 0) pairs.emplace_back("up", "down");
  return pairs;
}

bool BlockKernels::repeats_collectives() const {
  return work.repeated == Repeated::block || work.repeated == Repeated::until_last_product;
}

bool BlockKernels::ends_before(std::string_view product, Pass pass) const {
  return pass == Pass::recompute && product == "down" &&
         work.repeated == Repeated::until_last_product;
}

}  // namespace lambcast
