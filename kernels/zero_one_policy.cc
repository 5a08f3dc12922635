#include "kernels/zero_one_policy.h"

namespace lambcast {

Step kind_of(const ZeroOnePolicy& policy, int step) {
  if (!policy.frozen) return step % policy.var_interval == 0 ? Step::full : Step::onebit;
  return step % policy.local_interval == 0 ? Step::onebit : Step::silent;
}

void advance(ZeroOnePolicy& policy, int step, int updates, const ZeroOneAdamOptions& options) {
  if (policy.frozen) {
    if (++policy.local_counter == options.local_step_scaler) {
      policy.local_counter = 0;
      const bool at_most = policy.local_interval > options.local_step_clipper / 2;
      policy.local_interval = at_most ? options.local_step_clipper : 2 * policy.local_interval;
    }
    return;
  }
  if (step % policy.var_interval == 0 && ++policy.var_counter == options.var_update_scaler) {
    policy.var_counter = 0;
    policy.var_interval *= 2;
  }
  policy.frozen = updates >= options.var_freeze_step;
}

}  // namespace lambcast
