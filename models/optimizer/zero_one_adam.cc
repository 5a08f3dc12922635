// 0/1 Adam (Lu et al. 2022, arXiv:2202.06009; deepspeed/runtime/fp16/onebit/zoadam.py).
#include "kernels/deepspeed_traffic.h"
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

using namespace expression;

Passes fused(StepKind step) {
  if (step == StepKind::warmup) return {30, 1, 0, 0, 0, "adam_step"};
  if (step == StepKind::round) return {22.125, 1, 0, 0, 0, "zero_one_onebit_step"};
  // A synchronisation has two kernels: its start, which includes the local step, and its end, which
  // decodes.
  return step == StepKind::compression ? Passes{32 + 22.125, 2, 0, 0, 0}
                                       : Passes{34, 1, 0, 0, 0, "zero_one_local_step"};
}

Passes zero_one_adam_update(StepKind step, Kernels kernels, bool decays) {
  if (kernels == Kernels::fused) return fused(step);
  const double common = momentum + direction + apply + (decays ? decay : 0);
  const double undecayed = decays ? 0 : 2;  // launches that are saved
  if (step == StepKind::warmup) return {common + variance, 0, 13 - undecayed, 0, 0};
  if (step == StepKind::silent) return {common + apply, 0, 13 - undecayed, 0, 0};
  if (step == StepKind::round)
    return {bytes_per_element(deepspeed_zero_one_onebit_round(), decays), 0, 11 - undecayed, 0, 0};
  return {deepspeed_zero_one_synchronisation_bytes - (decays ? 0 : decay), 0, 24 - undecayed, 0, 0};
}

StepPhases zero_one_adam_phases(const RunOfSteps& run) {
  const std::int64_t dry = run.dry_run ? 1 : 0;
  const ZeroOneSteps counts = zero_one_steps(run.onebit, run.steps - dry);
  return {{StepKind::dry_run, dry},
          {StepKind::warmup, counts.full},
          {StepKind::round, counts.rounds},
          {StepKind::compression, counts.onebit},
          {StepKind::silent, counts.silent}};
}

}  // namespace

const OptimizerModel zero_one_adam_model{.type = OptimizerType::zero_one_adam,
                                         .name = "zero_one_adam",
                                         .title = "0/1 Adam",
                                         .label = "0/1 Adam",
                                         .plain = OptimizerType::adam,
                                         .of_deepspeed = true,
                                         .flat_in_fp16 = true,
                                         .onebit = true,
                                         .update = zero_one_adam_update,
                                         .phases = zero_one_adam_phases,
                                         .state_bytes = two_moments,
                                         .published_freeze_share = 12'500.0 / 150'000.0};

}  // namespace lambcast
