// 1-bit LAMB (Li et al. 2021, arXiv:2104.06069; deepspeed/runtime/fp16/onebit/lamb.py).
#include "kernels/deepspeed_traffic.h"
#include "models/optimizer/optimizer_model.h"

namespace lambcast {
namespace {

// Number of kernels started by the operations counted in kernels/deepspeed_traffic.h, including
// those on scalars.
Passes onebit_lamb_update(StepKind step, Kernels kernels, bool decays) {
  if (kernels == Kernels::fused)
    return step == StepKind::compression ? Passes{38.25, 3, 0, 0, 0, "onebit_lamb_step"}
                                         : Passes{42, 3, 0, 0, 0, "lamb_step"};
  if (step == StepKind::warmup)
    return {bytes_per_element(deepspeed_onebit_lamb_warm_up(), decays), 0, decays ? 19. : 17., 0,
            deepspeed_onebit_lamb_warm_up_waits};
  return {bytes_per_element(deepspeed_onebit_lamb_compression(), decays), 0, decays ? 28. : 22., 0,
          static_cast<double>(deepspeed_onebit_lamb_compression_waits(decays))};
}

}  // namespace

const OptimizerModel onebit_lamb_model{.type = OptimizerType::onebit_lamb,
                                       .name = "onebit_lamb",
                                       .title = "1-bit LAMB",
                                       .label = "1-bit Lamb",
                                       .plain = OptimizerType::lamb,
                                       .of_deepspeed = true,
                                       .onebit = true,
                                       .is_lamb = true,
                                       .layerwise = true,
                                       .update = onebit_lamb_update,
                                       .phases = onebit_phases,
                                       .state_bytes = two_moments,
                                       .published_freeze_share = 1000.0 / 5993.0};

}  // namespace lambcast
