#include "models/parallel/model_flops.h"

namespace lambcast::parallel {
namespace {

Flops blocks_flops(const ModelShape& shape, std::int64_t seq_len, AttentionCount count) {
  Flops forward = forward_flops(shape, seq_len) - outside_forward_flops(shape, seq_len);
  if (count == AttentionCount::causal)
    forward = forward - attention_core_flops(shape, seq_len, AttentionCount::causal);
  return forward;
}

}  // namespace

Flops attention_core_flops(const ModelShape& shape, std::int64_t seq_len, AttentionCount count) {
  const auto pairs = static_cast<double>(seq_len) * static_cast<double>(seq_len);
  Flops core;
  for (const Cost& block : shape.blocks) core += Flops(block.forward_flops.per_token_pair * pairs);
  return count == AttentionCount::causal ? core / 2 : core;
}

Flops model_flops(const ModelShape& shape, std::int64_t seq_len, AttentionCount count) {
  const Flops forward = blocks_flops(shape, seq_len, count) + outside_forward_flops(shape, seq_len);
  if (!shape.adapters) return 3.0 * forward;
  const double adapters = 6 * static_cast<double>(seq_len * trained_parameters(shape));
  return 2.0 * forward + attention_core_flops(shape, seq_len, count) + Flops(adapters);
}

Flops hardware_flops(const ModelShape& shape, std::int64_t seq_len, Recompute recompute,
                     AttentionCount count) {
  const Flops model = model_flops(shape, seq_len, count);
  switch (recompute) {
    case Recompute::none:
      return model;
    case Recompute::selective:
      return model + attention_core_flops(shape, seq_len, count);
    case Recompute::alternate:
      return model + 0.5 * (blocks_flops(shape, seq_len, count) -
                            attention_core_flops(shape, seq_len, count));
    case Recompute::full:
      return model + blocks_flops(shape, seq_len, count);
  }
  return model;
}

Flops korthikanti_selective_flops(const ModelShape& shape, std::int64_t seq_len) {
  return model_flops(shape, seq_len) +
         3.0 * attention_core_flops(shape, seq_len, AttentionCount::full);
}

}  // namespace lambcast::parallel
