#include "kernels/emulated_world/onebit_adam.h"

#include "kernels/reference/adam.h"
#include "kernels/reference/compression.h"
#include "sim/base/check.h"

namespace lambcast::emulated {
namespace {

bool never_freezes(const World& world, std::size_t t) {
  return !world.non_freeze.empty() && world.non_freeze[t];
}

// Whether tensor t is the last one of its group.
bool last_of_group(const World& world, std::size_t t) {
  const auto alike = [&](std::size_t other) {
    return (world.group_of.empty() || world.group_of[other] == world.group_of[t]) &&
           never_freezes(world, other) == never_freezes(world, t);
  };
  for (std::size_t later = t + 1; later < world.tensors.tensors(); ++later) {
    if (alike(later)) return false;
  }
  return true;
}

// Averages tensor t of all momenta and masks it.
void average_momentum(OnebitAdam& o, std::size_t t) {
  const TensorLayout& tensors = o.world.tensors;
  std::vector<std::span<float>> momenta;
  for (auto& rank : o.ranks) momenta.emplace_back(rank.m);
  average_tensor(o.world, t, momenta, o.errors[t]);
  if (o.world.mask.empty()) return;
  for (const std::span<float> m : momenta) {
    reference::apply_mask(tensors.view(m, t),
                          tensors.view(std::span<const float>(o.world.mask), t));
  }
}

// Makes an Adam step on tensor t with the gradient that all ranks share.
void full_update(OnebitAdam& o, std::size_t t, std::span<const float> averaged,
                 const AdamOptions& options) {
  const TensorLayout& tensors = o.world.tensors;
  for (auto& rank : o.ranks) {
    reference::adam_step(tensors.view(std::span(rank.p), t), tensors.view(std::span(rank.m), t),
                         tensors.view(std::span(rank.v), t), tensors.view(averaged, t),
                         in_group(options, o.world.group_of, t), o.step);
  }
}

void freeze(OnebitAdam& o) {
  o.frozen = true;
  o.engine_allreduce = false;
}

void warm_up(OnebitAdam& o, Gradients gradients) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    OnebitAdam::Rank& rank = o.ranks[r];
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      reference::adam_step(tensors.view(std::span(rank.p), t), tensors.view(std::span(rank.m), t),
                           tensors.view(std::span(rank.v), t),
                           tensors.view(std::span(gradients[r]), t),
                           in_group(o.options.adam, o.world.group_of, t), o.step);
    }
  }
  if (o.step >= o.options.freeze_step) freeze(o);
}

void compressed(OnebitAdam& o, Gradients gradients) {
  const TensorLayout& tensors = o.world.tensors;
  const std::vector<float> averaged =
      o.world.non_freeze.empty() ? std::vector<float>() : mean(gradients);
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    if (never_freezes(o.world, t)) {
      full_update(o, t, averaged, o.options.adam);
      continue;
    }
    for (std::size_t r = 0; r < o.ranks.size(); ++r) {
      reference::update_momentum(tensors.view(std::span(o.ranks[r].m), t),
                                 tensors.view(std::span(gradients[r]), t), o.options.adam.beta1,
                                 1.0f);
    }
    average_momentum(o, t);
    for (auto& rank : o.ranks) {
      reference::adam_apply(tensors.view(std::span(rank.p), t), tensors.view(std::span(rank.m), t),
                            tensors.view(std::span<const float>(rank.v), t),
                            in_group(o.options.adam, o.world.group_of, t), o.world.quirks.unseen);
    }
  }
}

// DeepSpeed's first call of step(): no weight moves, but momenta that exist already lose precision,
// and the moments of non_freeze groups are updated with the gradient.
void dry_run(OnebitAdam& o, Gradients gradients) {
  AdamOptions standing = o.options.adam;
  standing.lr = 0;
  const std::vector<float> averaged = mean(gradients);
  for (std::size_t t = 0; t < o.world.tensors.tensors(); ++t) {
    if (never_freezes(o.world, t)) {
      full_update(o, t, averaged, standing);
    } else {
      average_momentum(o, t);
    }
  }
  for (std::size_t t = 0; t < o.errors.size(); ++t) {
    if (last_of_group(o.world, t))
      o.errors[t] = error_feedback(o.world.tensors.size(t), o.world.ranks);
  }
  o.dry_run_pending = o.frozen = false;
}

}  // namespace

std::vector<ErrorFeedback> errors_per_tensor(const World& world) {
  std::vector<ErrorFeedback> errors;
  for (std::size_t t = 0; t < world.tensors.tensors(); ++t) {
    errors.push_back(error_feedback(world.tensors.size(t), world.ranks));
  }
  return errors;
}

void average_tensor(const World& world, std::size_t t, std::span<const std::span<float>> flat,
                    ErrorFeedback& errors) {
  if (world.ranks == 1) return;
  std::vector<std::span<float>> buffers;
  for (const std::span<float> all : flat) buffers.push_back(world.tensors.view(all, t));
  compressed_allreduce(buffers, errors, world.quirks.padding);
}

OnebitAdam onebit_adam(const World& world, const OnebitAdamOptions& options) {
  check(world);
  check_freeze_step("freeze_step", options.freeze_step, world.quirks.dry_run);
  const std::vector<float> zero(world.initial.size());
  OnebitAdam o{.world = world,
               .options = options,
               .ranks = std::vector(world.size(), OnebitAdam::Rank{world.initial, zero, zero}),
               .errors = errors_per_tensor(world),
               .step = world.quirks.dry_run == DryRun::at_construction ? 1 : 0,
               .dry_run_pending = world.quirks.dry_run == DryRun::on_first_gradient};
  o.options.adam.bias_correction = false;
  return o;
}

Step step(OnebitAdam& o, Gradients gradients) {
  const bool averaged = o.engine_allreduce;
  const auto seen = reduce(o.world, gradients, averaged);
  if (!seen) return Step::skipped;
  ++o.step;
  if (o.dry_run_pending) {
    dry_run(o, *seen);
    return Step::dry_run;
  }
  if (o.frozen) {
    compressed(o, *seen);
    return Step::onebit;
  }
  warm_up(o, *seen);
  return averaged ? Step::full : Step::silent;
}

void begin_compression(OnebitAdam& o) {
  LAMBCAST_CHECK(o.step > 0, "no step was taken that a variance could come from");
  if (o.frozen) return;
  o.options.freeze_step = o.step;
  freeze(o);
}

void resume_as_deepspeed(OnebitAdam& o) {
  o.errors = errors_per_tensor(o.world);
  o.frozen = o.step >= o.options.freeze_step;
  o.engine_allreduce = !o.frozen;
  o.dry_run_pending = o.world.quirks.dry_run == DryRun::on_first_gradient;
}

}  // namespace lambcast::emulated
