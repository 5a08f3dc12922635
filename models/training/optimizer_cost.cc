#include "models/training/optimizer_cost.h"

namespace lambcast {
namespace {

using deepspeed::CommBackend;
using deepspeed::OptimizerType;

// Bytes of the PyTorch expressions on fp32 that the 1-bit optimizers are made of.
constexpr double momentum = 20;   // m.mul_(b1).add_(g, alpha): 8 + 12
constexpr double variance = 20;   // v.mul_(b2).addcmul_(g, g): 8 + 12
constexpr double direction = 28;  // m / (v.sqrt() + eps): 8 + 8 + 12
constexpr double decay = 20;      // upd += wd * p: 8 + 12
constexpr double apply = 20;      // p.add_(-lr * upd): 8 + 12
constexpr double norms = 8;       // ||p||, ||upd||: 4 + 4
// Norms of p in fp32 and g in fp16; then g, p and m read, p, m and the fp16 copy of p written: a
// multi-tensor kernel each, and one that turns norms into rates.
constexpr Passes lars{6 + 20, 3, 0, 0, 0};
constexpr double adam_common = direction + decay + apply;

Passes onebit_lamb(StepKind step) {
  if (step == StepKind::warmup)
    return {momentum + variance + direction + decay + norms + apply, 0, 19, 0, 2};
  // clone(m) 8; m scaled 8 and unscaled 8; gradient rebuilt: mul 8, sub 12, div 8; fresh variance;
  // denominator 16; m / den 12; decay; factor: sqrt 8, add 8, div 12, max 4; norms; apply.
  return {8 + momentum + 8 + 8 + 28 + variance + 16 + 12 + decay + 32 + norms + apply, 0, 28, 0, 3};
}

Passes onebit_adam(StepKind step) {
  if (step == StepKind::warmup) return {momentum + variance + adam_common, 0, 13, 0, 0};
  return {momentum + adam_common, 0, 11, 0, 0};
}

Passes zero_one_adam(StepKind step) {
  if (step == StepKind::warmup) return {momentum + variance + adam_common, 0, 13, 0, 0};
  if (step == StepKind::silent) return {momentum + adam_common + apply, 0, 13, 0, 0};
  // A 1-bit round rewinds p 12, scales u 28, sets m 16 and moves p on 40.
  return {momentum + adam_common + apply + 96, 0, 24, 0, 0};
}

// Bytes of kernels/cuda/{adam,lamb}.h, fp16 copy of the weights included.
Passes fused_update(OptimizerType type, StepKind step) {
  const bool compressing = step == StepKind::compression;
  switch (type) {
    case OptimizerType::adam:
    case OptimizerType::adamw:
      return {30, 1, 0, 0, 0, "adam_step"};
    case OptimizerType::lamb:
      return {42, 3, 0, 0, 0, "lamb_step"};
    case OptimizerType::onebit_lamb:
      return compressing ? Passes{42.125, 3, 0, 0, 0, "onebit_lamb_step"}
                         : Passes{42, 3, 0, 0, 0, "lamb_step"};
    case OptimizerType::onebit_adam:
      return compressing ? Passes{18, 1, 0, 0, 0, "onebit_adam_step"}
                         : Passes{30, 1, 0, 0, 0, "adam_step"};
    case OptimizerType::zero_one_adam:
      if (step == StepKind::warmup) return {30, 1, 0, 0, 0, "adam_step"};
      // A 1-bit round is a local step and the begin and end of a sync.
      return compressing ? Passes{34 + 22 + 26, 3, 0, 0, 0}
                         : Passes{34, 1, 0, 0, 0, "zero_one_local_step"};
    case OptimizerType::lars:
      return lars;
  }
  return {};
}

}  // namespace

std::string_view name_of(StepKind kind) {
  constexpr std::string_view names[] = {"uniform", "warmup", "compression", "silent"};
  return names[static_cast<std::size_t>(kind)];
}

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
  if (kernels == Kernels::fused) return fused_update(type, step);
  switch (type) {
    case OptimizerType::adam:
    case OptimizerType::adamw:
      // FusedAdam is one multi-tensor kernel; unfused, Adam is the warm-up of 1-bit Adam.
      return kernels == Kernels::unfused_adam ? onebit_adam(StepKind::warmup)
                                              : Passes{28, 1, 0, 0, 0};
    case OptimizerType::lamb:
      // One fused kernel in three launches a tensor (csrc/lamb); apex: multi-tensor, norms apart.
      return kernels == Kernels::nvidia ? Passes{48, 20, 0, 0, 0} : Passes{42, 0, 3, 0, 0};
    case OptimizerType::onebit_lamb:
      return onebit_lamb(step);
    case OptimizerType::onebit_adam:
      return onebit_adam(step);
    case OptimizerType::zero_one_adam:
      return zero_one_adam(step);
    case OptimizerType::lars:
      return lars;
  }
  return {};
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
