#include "models/training/plan/pass_options.h"

namespace lambcast {

PassOptions pass_options_of(const Parallelism& how) {
  return {how.recompute,
          how.repeated,
          how.attention,
          how.fp8_attention,
          how.fp8_gates,
          how.framework.fusion,
          how.framework.eager_loss,
          how.framework.fp32_gradients,
          how.captured,
          how.experts};
}

void set_pass_options(Parallelism& how, const PassOptions& options) {
  how.recompute = options.recompute;
  how.repeated = options.repeated;
  how.attention = options.attention;
  how.fp8_attention = options.fp8_attention;
  how.fp8_gates = options.fp8_gates;
  how.framework.fusion = options.fusion;
  how.framework.eager_loss = options.eager_loss;
  how.framework.fp32_gradients = options.fp32_gradients;
  how.captured = options.captured;
  how.experts = options.experts;
}

bool runs_whole_model(const Parallelism& how) {
  const bool all_or_none =
      how.sharding == parallel::Sharding::none || how.shard_ranks == how.replicas();
  const bool half_or_single =
      how.format == MatrixFormat::half || how.format == MatrixFormat::single;
  return steps_as_deepspeed(how.framework.name) && how.model_ranks() == 1 && how.layout.ep == 1 &&
         how.layout.virtual_stages == 1 && how.sharding != parallel::Sharding::weights &&
         all_or_none && !how.full_all_reduce && how.optimizer_on == OptimizerOn::gpu &&
         !how.offload.any() && half_or_single;
}

}  // namespace lambcast
