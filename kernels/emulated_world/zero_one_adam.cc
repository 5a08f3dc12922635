#include "kernels/emulated_world/zero_one_adam.h"

#include <algorithm>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/reference/adam.h"

namespace lambcast::emulated {
namespace {

void full_step(ZeroOneAdam& o, const std::vector<std::vector<float>>& g) {
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    ZeroOneAdam::Rank& rank = o.ranks[r];
    reference::adam_step(rank.p, rank.m, rank.v, g[r], o.options.adam, o.step);
  }
}

void onebit_gradient_step(ZeroOneAdam& o, std::vector<std::vector<float>>& g) {
  const bool keep = o.world.ranks == 1 && o.world.quirks.lone_rank_keeps_momentum;
  if (!keep) {
    average_per_tensor(o.world, std::vector<std::span<float>>(g.begin(), g.end()), o.errors);
  }
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    ZeroOneAdam::Rank& rank = o.ranks[r];
    if (keep) {
      reference::adam_apply(rank.p, rank.m, rank.v, o.options.adam);
    } else {
      reference::zero_one_onebit_step(rank.p, rank.m, rank.v, g[r], o.options.adam);
    }
  }
}

void synchronise(ZeroOneAdam& o) {
  std::vector<std::span<float>> moved;
  for (auto& rank : o.ranks) {
    reference::zero_one_sync_begin(rank.p, rank.v, rank.u, o.options.adam);
    moved.emplace_back(rank.u);
  }
  average_per_tensor(o.world, moved, o.errors);
  for (auto& rank : o.ranks) {
    reference::zero_one_sync_end(rank.p, rank.m, rank.v, rank.u, o.lrs, o.options.adam);
  }
  o.lrs = 0;
}

}  // namespace

Step kind_of(const ZeroOnePolicy& policy, int step) {
  if (!policy.frozen) return step % policy.var_interval == 0 ? Step::full : Step::onebit;
  return step % policy.local_interval == 0 ? Step::onebit : Step::silent;
}

void advance(ZeroOnePolicy& policy, int step, int updates, const ZeroOneAdamOptions& options) {
  if (policy.frozen) {
    if (++policy.local_counter == options.local_step_scaler) {
      policy.local_counter = 0;
      policy.local_interval = std::min(options.local_step_clipper, 2 * policy.local_interval);
    }
    return;
  }
  if (step % policy.var_interval == 0 && ++policy.var_counter == options.var_update_scaler) {
    policy.var_counter = 0;
    policy.var_interval *= 2;
  }
  policy.frozen = updates >= options.var_freeze_step;
}

ZeroOneAdam zero_one_adam(const World& world, const ZeroOneAdamOptions& options) {
  check(world);
  check_freeze_step("var_freeze_step", options.var_freeze_step, DryRun::none);
  const std::vector<float> zero(world.initial.size());
  return {.world = world,
          .options = options,
          .ranks = std::vector(world.size(), ZeroOneAdam::Rank{world.initial, zero, zero, zero}),
          .errors = errors_per_tensor(world),
          .policy = {},
          .step = world.quirks.dry_run == DryRun::at_construction ? 1 : 0,
          .dry_run_pending = world.quirks.dry_run == DryRun::on_first_gradient};
}

Step step(ZeroOneAdam& o, Gradients gradients) {
  if (o.dry_run_pending) {
    o.dry_run_pending = false;
    o.step = 1;
    return Step::dry_run;
  }
  const Step kind = kind_of(o.policy, o.step + 1);
  auto seen = reduce(o.world, gradients, kind == Step::full);
  if (!seen) return Step::skipped;
  ++o.step;
  ++o.updates;
  if (o.policy.frozen) {
    for (std::size_t r = 0; r < o.ranks.size(); ++r) {
      ZeroOneAdam::Rank& rank = o.ranks[r];
      reference::zero_one_local_step(rank.p, rank.m, rank.v, rank.u, (*seen)[r], o.options.adam);
    }
    o.lrs += o.options.adam.lr;
    if (kind == Step::onebit) synchronise(o);
  } else if (kind == Step::full) {
    full_step(o, *seen);
  } else {
    onebit_gradient_step(o, *seen);
  }
  const bool was_frozen = o.policy.frozen;
  advance(o.policy, o.step, o.updates, o.options);
  if (o.policy.frozen && !was_frozen) o.errors = errors_per_tensor(o.world);
  return kind;
}

void resume_as_deepspeed(ZeroOneAdam& o) {
  const bool frozen = o.policy.frozen;
  o.policy = {};
  o.policy.frozen = frozen;
  o.errors = errors_per_tensor(o.world);
  o.lrs = 0;
  for (auto& rank : o.ranks) std::fill(rank.u.begin(), rank.u.end(), 0.0f);
}

}  // namespace lambcast::emulated
