#include "experiments/scenario/expert_choice.h"

#include <fmt/format.h>

namespace lambcast {
namespace {

constexpr double most_copies = 1000;

const Sourced<double> even_by_loss{
    1.2,
    {Kind::assumed,
     "routers balanced by a loss; of Qwen3-235B on H100 forced balance saved 13 and 20 % of a step "
     "(Megatron-MoE-ModelZoo)"}};

// Rejects 1-bit optimizers with experts. They compress the momentum of all parameters over all
// data-parallel ranks, and do not treat experts separately (DeepSpeed runtime/fp16/onebit,
// runtime/comm/nccl.py).
void refuse_mixing(OptimizerType optimizer) {
  if (is_onebit(optimizer))
    fail_input(flag("optimizer"),
               fmt::format("{} exchanges every parameter over all data-parallel ranks and would "
                           "average different experts",
                           name_of(optimizer)),
               "optimizers that do not compress");
}

}  // namespace

ExpertUse choose_experts(const Words& words, const ModelShape& model, OptimizerType optimizer,
                         const Parallelism& how) {
  const FrameworkName framework = how.framework.name;
  const bool deepspeed = steps_as_deepspeed(framework);
  ExpertUse use;
  if (model.experts == 0) {
    for (const char* key : {"etp", "expert_dispatch", "capacity_factor", "imbalance",
                            "expert_overlap", "expert_kernels", "expert_routing"})
      if (words.find(key) != nullptr)
        fail_input(flag(key), fmt::format("{} has no experts", model.name));
    return use;
  }
  if (how.layout.ep > 1) refuse_mixing(optimizer);
  if (const auto dispatch = words.chosen<Dispatch>("expert_dispatch")) use.dispatch = *dispatch;
  use.overlapped = words.choice("expert_overlap").value_or(0) == 1;
  // torch._grouped_mm computes all experts of a rank in one call.
  if (framework == FrameworkName::torchtitan) use.kernels = ExpertKernels::grouped;
  if (const auto kernels = words.chosen<ExpertKernels>("expert_kernels")) use.kernels = *kernels;
  const auto capacity = words.number("capacity_factor", 0, most_copies);
  const auto imbalance = words.number("imbalance", 1, most_copies);
  use.capacity_factor =
      capacity.value_or(deepspeed && !imbalance ? deepspeed_experts.capacity_factor : 0);
  if (use.capacity_factor > 0 && imbalance)
    fail_input(flag("imbalance"),
               "has no effect with a capacity: every expert computes the same number of tokens",
               "--capacity-factor 0 for dropless experts");
  if (deepspeed && use.capacity_factor > 0) use.routing = deepspeed_experts.routing;
  if (const auto routing = words.chosen<Routing>("expert_routing")) use.routing = *routing;
  if (use.routing == Routing::one_hot && use.capacity_factor == 0)
    fail_input(flag("expert_routing"), "one_hot needs a limit of tokens for each expert",
               "with --capacity-factor above 0");
  if (imbalance && *imbalance != even_by_loss.value)
    use.imbalance = {*imbalance, {Kind::assumed, "--imbalance"}};
  else if (use.capacity_factor == 0)
    use.imbalance = even_by_loss;
  return use;
}

}  // namespace lambcast
