#include "models/training/price/block_kernels.h"

#include <algorithm>

namespace lambcast {

BlockKernels::BlockKernels(const BlockWork& of, const ExpertPlan* with,
                           const ActivationCalls& calls, const ActivationCalls& encoder,
                           const GpuRates& rates)
    : work(of),
      experts(with),
      activations(calls),
      of_encoder(encoder),
      forward(block_forward(of, rates)),
      backward(block_backward(of, rates)) {}

std::vector<BlockKinds> kinds_of(const PipelinePlan& plan, const GpuRates& rates) {
  std::vector<BlockKinds> kinds;
  const ActivationCalls& encoder =
      plan.stacks.empty() ? plan.activations : plan.stacks.front().activations;
  const auto add = [&](const BlockWork& block, const std::optional<ExpertPlan>& experts,
                       const ActivationCalls& calls) {
    kinds.push_back({{block, nullptr, calls, encoder, rates}, std::nullopt});
    if (experts) kinds.back().experts.emplace(experts->block, &*experts, calls, encoder, rates);
  };
  for (const BlocksAlike& stack : plan.stacks) add(stack.block, stack.experts, stack.activations);
  if (plan.stacks.empty()) add(plan.block, plan.experts, plan.activations);
  return kinds;
}

parallel::ChunkContent part_of(const parallel::ChunkContent& content, const PipelinePlan& plan,
                               std::size_t stack) {
  if (plan.stacks.empty()) return content;
  const BlocksAlike& alike = plan.stacks[stack];
  parallel::ChunkContent part = content;
  part.first_layer = std::max(content.first_layer, alike.first_layer);
  part.layers =
      std::max(0, std::min(content.first_layer + content.layers, alike.first_layer + alike.layers) -
                      part.first_layer);
  return part;
}

bool begins(const parallel::ChunkContent& part, const BlocksAlike& stack) {
  return part.layers > 0 && part.first_layer == stack.first_layer;
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
  if (work.parallel_block)
    return {{{"query-key-value", "up"}, {"projection", "down"}, activations}};
  std::vector<Pair> pairs{{{"query-key-value"}, {"projection"}, activations}};
  if (work.encoder_tokens > 0) {
    pairs.push_back({{"cross query"}, {"cross projection"}, activations});
    pairs.push_back({{"cross key-value"}, {}, of_encoder});
  }
  if (experts == nullptr || work.experts->shared_ffn > 0)
    pairs.push_back({{"up"}, {"down"}, activations});
  return pairs;
}

bool BlockKernels::repeats_collectives() const {
  return work.repeated == Repeated::block || work.repeated == Repeated::until_last_product;
}

bool BlockKernels::ends_before(const std::vector<std::string_view>& products, Pass pass) const {
  return pass == Pass::recompute && products.back() == "down" && ends_before_last_product(work);
}

}  // namespace lambcast
