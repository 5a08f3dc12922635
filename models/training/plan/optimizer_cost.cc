#include "models/training/plan/optimizer_cost.h"

#include <cmath>

#include "kernels/deepspeed_traffic.h"

namespace lambcast {

Kernels stack_kernels(const StackSpec& stack, OptimizerType type) {
  if (is_onebit(type)) return Kernels::deepspeed;
  if (stack.implementation == "nvidia") return Kernels::nvidia;
  return stack.unfused_adam && !is_lamb(type) ? Kernels::unfused_adam : Kernels::deepspeed;
}

bool asks_all_for_overflow(Wrapper wrapper, OptimizerType type, Kernels kernels,
                           const Engine& engine) {
  if (kernels == Kernels::fused || kernels == Kernels::nvidia) return false;
  return (wrapper == Wrapper::fp16_unfused && type == OptimizerType::lamb) ||
         (wrapper == Wrapper::fp16 && !engine.checks_every_tensor);
}

Passes wrapper_passes(Wrapper wrapper, OptimizerType type, Kernels kernels, const Engine& engine) {
  const OptimizerModel& optimizer = model_of(type);
  // Fused kernels: norm of fp16 gradients 2, unscale and clip into fp32 6; a copy of the weights 6,
  // unless the update writes it.
  if (kernels == Kernels::fused && optimizer.in_kernels)
    return optimizer.rounds_apart ? Passes{8 + 6, 4, 0, 1, 0} : Passes{8, 3, 0, 1, 0};
  // Apex: norm of the fp16 gradients; all other work is inside the optimizer's kernels.
  if (kernels == Kernels::nvidia) return {2, 4, 0, 1, 0};
  // Overflow check 10 (float() and sum()), fp32 copy 6, norm 4, unscale 8, fp16 copy 6.
  if (!is_fp16(wrapper)) return {34, 20, 1, 2, 0};
  if (asks_all_for_overflow(wrapper, type, kernels, engine)) {
    // FP16_Optimizer of 0.3.0, without the overflow check (10). For LAMB: two flattenings of 8, the
    // norm of fp16 gradients 10, which LAMB's kernel unscales, and the fp16 copy 6. Waits: two per
    // group, and one for the flag.
    return wrapper == Wrapper::fp16 ? Passes{deepspeed_fp16_wrapper_bytes - 10, 20, 2, 5, 0}
                                    : Passes{24, 20, 1, 8, 0};
  }
  // FP16_Optimizer: float(), sum() and a wait for each tensor; copies to fp32 and back; norms of
  // whole groups.
  if (wrapper == Wrapper::fp16) return {deepspeed_fp16_wrapper_bytes, 20, 4, 5, 1};
  // FP16_UnfusedOptimizer: the same with a norm for each tensor, each unscaled separately.
  return {deepspeed_lamb_wrapper_bytes, 0, 9, 7, 1};
}

Passes autocast_passes(Kernels kernels) {
  return kernels == Kernels::unfused_adam ? Passes{8 + 4 + 8, 4, 3, 1, 0}
                                          : Passes{8 + 4 + 8, 4 + 3, 0, 1, 0};
}

Passes bf16_accumulation_passes() { return {6 + 12, 0, 2, 0, 0}; }  // converted to fp32, added

Passes bf16_gradient_passes(bool clips) {
  // Norm 4; clip 8; clearing the fp32 sums 4 and the bf16 gradients 2.
  return {4 + (clips ? 8. : 0.) + 4 + 2, 4, clips ? 2. : 1., 1, 0};
}

Passes bf16_weight_passes() { return {6, 0, 1, 0, 0}; }

DecayingShare decaying_share(const std::vector<GroupSize>& groups, bool weight_decay, bool flat) {
  if (!weight_decay) return {0, 0};
  double elements = 0, tensors = 0, all_elements = 0, all_tensors = 0;
  for (const GroupSize& group : groups) {
    const auto of_group = static_cast<double>(group.elements);
    const double launched_for = flat ? 1 : static_cast<double>(group.tensors);
    all_elements += of_group;
    all_tensors += launched_for;
    if (group.name == "no_decay") continue;
    elements += of_group;
    tensors += launched_for;
  }
  return {elements / all_elements, tensors / all_tensors};
}

Passes update_passes(OptimizerType type, StepKind step, Kernels kernels,
                     const DecayingShare& decaying) {
  Passes mean = model_of(type).update(step, kernels, true);
  const Passes rest = model_of(type).update(step, kernels, false);
  mean.bytes_per_element =
      std::lerp(rest.bytes_per_element, mean.bytes_per_element, decaying.elements);
  mean.launches_per_tensor =
      std::lerp(rest.launches_per_tensor, mean.launches_per_tensor, decaying.tensors);
  mean.syncs_per_tensor = std::lerp(rest.syncs_per_tensor, mean.syncs_per_tensor, decaying.tensors);
  return mean;
}

CompressionPasses compression_passes(OptimizerType type, Backend backend, Kernels kernels,
                                     int ranks) {
  const double n = ranks;
  if (kernels == Kernels::fused) {
    // The updates of the 1-bit optimizers also decode.
    const Passes decode = is_onebit(type) ? Passes{} : Passes{4.125, 1, 0, 0, 0, "onebit_decode"};
    return {{16.125, 2, 0, 0, 0, "onebit_worker_momentum"},
            {0.125 + 8.125 / n, 2, 0, 0, 0, ranks == 8 ? "onebit_server_n8" : ""},
            decode};
  }
  const double saved = traits_of(backend).packs_at_once ? 4 : 0;
  return {{100 - saved, 12, 0, 1, 0}, {34 + 100 / n, 20, 0, 1, 0}, {38 - saved, 8, 0, 0, 0}};
}

}  // namespace lambcast
