#include "kernels/emulated_world/onebit_adam.h"

#include "kernels/reference/adam.h"
#include "kernels/reference/compression.h"

namespace lambcast::emulated {

std::vector<ErrorFeedback> errors_per_tensor(const World& world) {
  std::vector<ErrorFeedback> errors;
  for (std::size_t t = 0; t < world.tensors.tensors(); ++t) {
    errors.push_back(error_feedback(world.tensors.size(t), world.ranks));
  }
  return errors;
}

void average_per_tensor(const World& world, std::span<const std::span<float>> flat,
                        std::vector<ErrorFeedback>& errors) {
  for (std::size_t t = 0; world.ranks > 1 && t < world.tensors.tensors(); ++t) {
    std::vector<std::span<float>> buffers;
    for (const std::span<float> all : flat) buffers.push_back(world.tensors.view(all, t));
    compressed_allreduce(buffers, errors[t], world.quirks.padding);
  }
  if (world.mask.empty()) return;
  for (const std::span<float> all : flat) reference::apply_mask(all, world.mask);
}

OnebitAdam onebit_adam(const World& world, const OnebitAdamOptions& options) {
  check(world);
  check_freeze_step("freeze_step", options.freeze_step, world.quirks.dry_run);
  const std::vector<float> zero(world.initial.size());
  return {.world = world,
          .options = options,
          .ranks = std::vector(world.size(), OnebitAdam::Rank{world.initial, zero, zero}),
          .errors = errors_per_tensor(world),
          .step = world.quirks.dry_run == DryRun::at_construction ? 1 : 0,
          .dry_run_pending = world.quirks.dry_run == DryRun::on_first_gradient};
}

Step step(OnebitAdam& o, Gradients gradients) {
  if (o.dry_run_pending) {
    o.dry_run_pending = false;
    o.step = 1;
    return Step::dry_run;
  }
  const auto seen = reduce(o.world, gradients, !o.frozen);
  if (!seen) return Step::skipped;
  ++o.step;
  if (!o.frozen) {
    for (std::size_t r = 0; r < o.ranks.size(); ++r) {
      OnebitAdam::Rank& rank = o.ranks[r];
      reference::adam_step(rank.p, rank.m, rank.v, (*seen)[r], o.options.adam, o.step);
    }
    o.frozen = o.step >= o.options.freeze_step;
    return Step::full;
  }
  std::vector<std::span<float>> momenta;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    reference::update_momentum(o.ranks[r].m, (*seen)[r], o.options.adam.beta1, 1.0f);
    momenta.emplace_back(o.ranks[r].m);
  }
  average_per_tensor(o.world, momenta, o.errors);
  for (auto& rank : o.ranks) reference::adam_apply(rank.p, rank.m, rank.v, o.options.adam);
  return Step::onebit;
}

}  // namespace lambcast::emulated
