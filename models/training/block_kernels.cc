#include "models/training/block_kernels.h"

#include <algorithm>

namespace lambcast {

BlockKernels::BlockKernels(const BlockWork& of, const ExpertPlan* with, const GpuRates& rates)
    : work(of),
      experts(with),
      forward(block_forward(of, rates)),
      backward(block_backward(of, rates)) {}

std::vector<BlockKinds> kinds_of(const PipelinePlan& plan, const GpuRates& rates) {
  std::vector<BlockKinds> kinds;
  const auto add = [&](const BlockWork& block, const std::optional<ExpertPlan>& experts) {
    kinds.push_back({{block, nullptr, rates}, std::nullopt});
    if (experts) kinds.back().experts.emplace(experts->block, &*experts, rates);
  };
  for (const BlocksAlike& stage : plan.pyramid) add(stage.block, stage.experts);
  if (plan.pyramid.empty()) add(plan.block, plan.experts);
  return kinds;
}

Duration BlockKernels::products(const std::vector<std::string_view>& names, Pass pass) const {
  Duration sum;
  for (const Piece& piece : pieces_of(pass))
    if (piece.pass == pass && std::ranges::find(names, piece.name) != names.end())
      sum += piece.duration;
  return sum;
}

Duration BlockKernels::attention_core(Pass pass) const {
  Duration sum;
  for (const Piece& piece : pieces_of(pass))
    if (piece.kind == PieceKind::attention && piece.pass == pass) sum += piece.duration;
  return sum;
}

std::vector<BlockKernels::Pair> BlockKernels::pairs() const {
  if (work.parallel_block) return {{{"query-key-value", "up"}, {"projection", "down"}}};
  std::vector<Pair> pairs{{{"query-key-value"}, {"projection"}}};
  if (experts == nullptr || work.experts->shared_ffn > 0) pairs.push_back({{"up"}, {"down"}});
  return pairs;
}

bool BlockKernels::repeats_collectives() const {
  return work.repeated == Repeated::block || work.repeated == Repeated::until_last_product;
}

bool BlockKernels::ends_before(const std::vector<std::string_view>& products, Pass pass) const {
  return pass == Pass::recompute && products.back() == "down" &&
         work.repeated == Repeated::until_last_product;
}

}  // namespace lambcast
