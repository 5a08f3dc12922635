// Functions that both libraries contain.
#include "kernels/torch/operations.h"

#include "kernels/layout.h"
#include "kernels/torch/guarded.h"
#include "kernels/zero_one_policy.h"

using namespace lambcast;

namespace {

ZeroOnePolicy policy_of(const lambcast_zero_one_policy& p) {
  return {p.var_interval, p.var_counter, p.local_interval, p.local_counter, p.frozen != 0};
}

}  // namespace

const char* lambcast_error(void) { return lambcast::torch::last_error().c_str(); }

size_t lambcast_padded(size_t n, int ranks) {
  return ranks < 1 ? 0 : chunk_layout(n, ranks).padded;
}

int lambcast_zero_one_kind(const lambcast_zero_one_policy* policy, int step) {
  const Step kind = kind_of(policy_of(*policy), step);
  return kind == Step::full     ? LAMBCAST_FULL
         : kind == Step::onebit ? LAMBCAST_ONEBIT
                                : LAMBCAST_SILENT;
}

void lambcast_zero_one_advance(lambcast_zero_one_policy* policy, int step, int var_freeze_step,
                               int var_update_scaler, int local_step_scaler,
                               int local_step_clipper) {
  ZeroOneAdamOptions options;
  options.var_freeze_step = var_freeze_step;
  options.var_update_scaler = var_update_scaler;
  options.local_step_scaler = local_step_scaler;
  options.local_step_clipper = local_step_clipper;
  ZeroOnePolicy p = policy_of(*policy);
  advance(p, step, step, options);
  *policy = {p.var_interval, p.var_counter, p.local_interval, p.local_counter, p.frozen};
}
