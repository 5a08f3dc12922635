#include "kernels/emulated_world/zero_one_adam.h"

#include <algorithm>

#include "kernels/emulated_world/onebit_adam.h"
#include "kernels/reference/adam.h"
#include "kernels/reference/compression.h"
#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

// One tensor of a rank.
struct Part {
  std::span<float> p, m, v, u;
  std::span<const float> g;  // empty if there is no gradient
  AdamOptions options;
  double lr_scale;
};

// Calls f for every tensor of every rank.
template <typename F>
void for_each_part(ZeroOneAdam& o, const std::vector<std::vector<float>>& g, F f) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    ZeroOneAdam::Rank& rank = o.ranks[r];
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      const auto of = [&](std::vector<float>& flat) { return tensors.view(std::span(flat), t); };
      f(Part{of(rank.p), of(rank.m), of(rank.v), of(rank.u),
             g.empty() ? std::span<const float>() : tensors.view(std::span(g[r]), t),
             in_group(o.options.adam, o.world.group_of, t),
             o.world.group_of.empty() ? 1.0 : o.world.group_of[t].lr_scale});
    }
  }
}

void full_step(ZeroOneAdam& o, const std::vector<std::vector<float>>& g) {
  for_each_part(
      o, g, [&](const Part& x) { reference::adam_step(x.p, x.m, x.v, x.g, x.options, o.step); });
}

// Averages all tensors of every rank's flat buffer and masks them.
void average(ZeroOneAdam& o, std::span<const std::span<float>> flat) {
  if (o.world.ranks == 1) return;
  for (std::size_t t = 0; t < o.world.tensors.tensors(); ++t) {
    average_tensor(o.world, t, flat, o.errors[t]);
  }
  if (o.world.mask.empty()) return;
  for (const std::span<float> all : flat) reference::apply_mask(all, o.world.mask);
}

void onebit_gradient_step(ZeroOneAdam& o, std::vector<std::vector<float>>& g) {
  const bool keep = o.world.ranks == 1 && o.world.quirks.lone_rank_keeps_momentum;
  average(o, std::vector<std::span<float>>(g.begin(), g.end()));
  for_each_part(o, g, [&](const Part& x) {
    if (keep)
      reference::adam_apply(x.p, x.m, x.v, x.options, o.world.quirks.unseen);
    else
      reference::zero_one_onebit_step(x.p, x.m, x.v, x.g, x.options, o.world.quirks.unseen);
  });
}

void local_step(ZeroOneAdam& o, const std::vector<std::vector<float>>& g) {
  for_each_part(o, g, [&](const Part& x) {
    reference::zero_one_local_step(x.p, x.m, x.v, x.u, x.g, x.options, o.world.quirks.unseen);
  });
  o.lrs += o.options.adam.lr;
}

void synchronise(ZeroOneAdam& o) {
  const Unseen unseen = o.world.quirks.unseen;
  for_each_part(o, {}, [&](const Part& x) {
    reference::zero_one_sync_begin(x.p, x.v, x.u, x.options, unseen);
  });
  std::vector<std::span<float>> moved;
  for (auto& rank : o.ranks) moved.emplace_back(rank.u);
  average(o, moved);
  for_each_part(o, {}, [&](const Part& x) {
    reference::zero_one_sync_end(x.p, x.m, x.v, x.u, o.lrs * x.lr_scale, x.options, unseen);
  });
  o.lrs = 0;
}

// Makes one step of the given kind; returns the kind that it became.
Step take(ZeroOneAdam& o, Step kind, std::vector<std::vector<float>>& g) {
  if (o.policy.frozen) {
    local_step(o, g);
    const bool moved = o.lrs != 0 || o.world.quirks.zero_lr_poisons;
    if (kind == Step::silent || !moved) return Step::silent;
    synchronise(o);
    return Step::onebit;
  }
  if (kind == Step::onebit) {
    onebit_gradient_step(o, g);
    return Step::onebit;
  }
  full_step(o, g);
  return o.engine_allreduce ? Step::full : Step::silent;
}

// Returns the number of steps that moved the weights.
int updates(const ZeroOneAdam& o) {
  return o.world.quirks.dry_run == DryRun::none ? o.step : o.step - 1;
}

}  // namespace

ZeroOneAdam zero_one_adam(const World& world, const ZeroOneAdamOptions& options) {
  check(world);
  check_freeze_step("var_freeze_step", options.var_freeze_step, world.quirks.dry_run);
  if (options.local_step_clipper < 1) {
    fail_input(Where{"", 0, "local_step_clipper"}, "must be at least 1");
  }
  const std::vector<float> zero(world.initial.size());
  ZeroOneAdam o{
      .world = world,
      .options = options,
      .ranks = std::vector(world.size(), ZeroOneAdam::Rank{world.initial, zero, zero, zero}),
      .errors = errors_per_tensor(world),
      .policy = {},
      .step = world.quirks.dry_run == DryRun::at_construction ? 1 : 0,
      .dry_run_pending = world.quirks.dry_run == DryRun::on_first_gradient};
  o.options.adam.bias_correction = false;
  return o;
}

Step step(ZeroOneAdam& o, Gradients gradients) {
  auto seen = reduce(o.world, gradients, o.engine_allreduce);
  if (!seen) return Step::skipped;
  ++o.step;
  if (o.dry_run_pending) {
    o.dry_run_pending = false;
    return Step::dry_run;
  }
  const Step did = take(o, kind_of(o.policy, o.step), *seen);
  const bool was_frozen = o.policy.frozen;
  advance(o.policy, o.step, updates(o), o.options);
  if (o.policy.frozen && !was_frozen) o.errors = errors_per_tensor(o.world);
  o.engine_allreduce = !o.policy.frozen && kind_of(o.policy, o.step + 1) == Step::full;
  return did;
}

void resume_as_deepspeed(ZeroOneAdam& o) {
  o.engine_allreduce =
      o.step < o.options.var_freeze_step && (o.step + 1) % o.policy.var_interval == 0;
  o.policy = {};
  o.errors = errors_per_tensor(o.world);
  o.lrs = 0;
  for (auto& rank : o.ranks) std::fill(rank.u.begin(), rank.u.end(), 0.0f);
  o.dry_run_pending = o.world.quirks.dry_run == DryRun::on_first_gradient;
}

}  // namespace lambcast::emulated
