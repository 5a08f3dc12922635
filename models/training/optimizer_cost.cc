#include "models/training/optimizer_cost.h"

namespace lambcast {
using deepspeed::CommBackend;

Kernels stack_kernels(const StackSpec& stack, OptimizerType type) {
  if (deepspeed::is_onebit(type)) return Kernels::deepspeed;
  if (stack.implementation == "nvidia") return Kernels::nvidia;
  return stack.unfused_adam && !deepspeed::is_lamb(type) ? Kernels::unfused_adam
                                                         : Kernels::deepspeed;
}

Passes wrapper_passes(OptimizerType type, Kernels kernels) {
  // Our kernels: norm from fp16 2, unscale and clip into fp32 6.
  if (kernels == Kernels::fused) return {8, 3, 0, 1, 0};
  // Apex: norm of the fp16 gradients, everything else inside the optimizer's kernels.
  if (kernels == Kernels::nvidia) return {2, 4, 0, 1, 0};
  // Overflow check 10 (float() and sum()), fp32 copy 6, norm 4, unscale 8, fp16 copy 6.
  constexpr double bytes = 34;
  switch (type) {
    case OptimizerType::onebit_lamb:  // unfused_optimizer.py: tensor by tensor, a .item() each
      return {bytes, 0, 7, 2, 1};
    case OptimizerType::lamb:  // the fused path flattens first
      return {16, 20, 1, 3, 0};
    default:
      return {bytes, 20, 1, 2, 0};
  }
}

Passes bf16_accumulation_passes() { return {6 + 12, 0, 2, 0, 0}; }  // to fp32, added

Passes bf16_gradient_passes(bool clips) {
  // Norm 4; clip 8; the fp32 sums and the bf16 gradients set to zero, 4 and 2.
  return {4 + (clips ? 8. : 0.) + 4 + 2, 4, clips ? 2. : 1., 1, 0};
}

Passes bf16_weight_passes() { return {6, 0, 1, 0, 0}; }

Passes update_passes(OptimizerType type, StepKind step, Kernels kernels) {
  return model_of(type).update(step, kernels);
}

CompressionPasses compression_passes(OptimizerType type, CommBackend backend, Kernels kernels,
                                     int ranks) {
  const double n = ranks;
  if (kernels == Kernels::fused) {
    const Passes decode =
        type == OptimizerType::onebit_lamb ? Passes{} : Passes{4.125, 1, 0, 0, 0, "onebit_decode"};
    return {{16.125, 2, 0, 0, 0, "onebit_worker_momentum"},
            {0.125 + 8.125 / n, 2, 0, 0, 0, ranks == 8 ? "onebit_server_n8" : ""},
            decode};
  }
  const double saved = backend == CommBackend::compressed ? 4 : 0;
  return {{100 - saved, 12, 0, 1, 0}, {34 + 100 / n, 20, 0, 1, 0}, {38 - saved, 8, 0, 0, 0}};
}

}  // namespace lambcast
