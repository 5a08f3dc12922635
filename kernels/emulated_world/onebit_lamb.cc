#include "kernels/emulated_world/onebit_lamb.h"

#include <algorithm>

#include "kernels/reference/compression.h"
#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

template <typename T>
std::span<T> part(const TensorLayout& tensors, std::vector<std::remove_const_t<T>>& flat,
                  std::size_t t) {
  return tensors.view(std::span<T>(flat.data(), tensors.elements()), t);
}

// Makes a LAMB step on the tensors from `first` on.
void full_step(OnebitLamb& o, std::vector<std::vector<float>>& gradients, std::size_t first) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    OnebitLamb::Rank& rank = o.ranks[r];
    for (std::size_t t = first; t < tensors.tensors(); ++t) {
      const auto ratio = reference::lamb_step(
          part<float>(tensors, rank.p, t), part<float>(tensors, rank.m, t),
          part<float>(tensors, rank.v, t), part<const float>(tensors, gradients[r], t),
          in_group(o.options.lamb, o.world.group_of, t), o.step);
      reference::add(rank.running[t], ratio, o.options.coeff_beta,
                     o.world.quirks.coefficient_average);
    }
  }
}

void freeze(OnebitLamb& o) {
  if (!o.world.quirks.fresh_variance_on_equality || o.step == o.options.freeze_step) {
    for (auto& rank : o.ranks) rank.fresh_v = rank.v;
  }
  o.frozen = true;
  o.engine_allreduce = false;
}

void warm_up(OnebitLamb& o, std::vector<std::vector<float>>& gradients) {
  full_step(o, gradients, 0);
  if (o.step >= o.options.freeze_step) freeze(o);
}

void set_scaling(OnebitLamb& o) {
  for (auto& rank : o.ranks) {
    if (rank.scaling.empty()) {
      rank.scaling = reference::scaling_coefficients(rank.m, o.compressing, o.world.quirks);
    }
  }
}

void update_momenta(OnebitLamb& o, std::vector<std::vector<float>>& momenta,
                    std::vector<std::vector<float>>& gradients) {
  const TensorLayout& tensors = o.compressing;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      reference::update_momentum(part<float>(tensors, momenta[r], t),
                                 part<const float>(tensors, gradients[r], t), o.options.lamb.beta1,
                                 o.ranks[r].scaling[t]);
    }
  }
}

// Returns every rank's momentum as one buffer for all tensors, with the padding if it persists.
std::vector<std::vector<float>> fused_momenta(const OnebitLamb& o) {
  std::vector<std::vector<float>> fused;
  for (const OnebitLamb::Rank& rank : o.ranks) {
    const auto end = rank.m.begin() + static_cast<std::ptrdiff_t>(o.compressing.elements());
    fused.emplace_back(rank.m.begin(), end);
    fused.back().insert(fused.back().end(), rank.tail.begin(), rank.tail.end());
  }
  return fused;
}

void average(OnebitLamb& o, std::vector<std::vector<float>>& fused) {
  if (o.world.ranks == 1) return;
  const std::vector<std::span<float>> buffers(fused.begin(), fused.end());
  o.scales = compressed_allreduce(buffers, o.errors, o.world.quirks.padding);
}

void keep_tail(const OnebitLamb& o, OnebitLamb::Rank& rank, const std::vector<float>& fused) {
  const auto elements = static_cast<std::ptrdiff_t>(o.compressing.elements());
  std::copy(fused.begin() + elements, fused.end(), rank.tail.begin());
}

OnebitLambOptions options_of(const OnebitLamb& o, std::size_t t) {
  OnebitLambOptions options = o.options;
  options.lamb = in_group(options.lamb, o.world.group_of, t);
  return options;
}

void compressed(OnebitLamb& o, std::vector<std::vector<float>>& gradients) {
  set_scaling(o);
  auto fused = fused_momenta(o);
  update_momenta(o, fused, gradients);
  average(o, fused);
  const TensorLayout& tensors = o.compressing;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    OnebitLamb::Rank& rank = o.ranks[r];
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      const bool masked = !o.world.mask.empty();
      reference::onebit_lamb_step(
          part<float>(tensors, rank.p, t), part<float>(tensors, rank.m, t),
          part<const float>(tensors, rank.v, t), part<float>(tensors, rank.fresh_v, t),
          part<const float>(tensors, fused[r], t),
          masked ? part<const float>(tensors, o.world.mask, t) : std::span<const float>(),
          rank.scaling[t],
          reference::frozen_coefficient(rank.running[t], o.world.quirks.coefficient_average),
          rank.last_factor[t], options_of(o, t), o.world.quirks.unseen);
    }
    keep_tail(o, rank, fused[r]);
  }
  if (tensors.tensors() == o.world.tensors.tensors()) return;
  gradients.assign(gradients.size(), mean(gradients));
  full_step(o, gradients, tensors.tensors());
}

// DeepSpeed's first call of step(): no weight moves, but momenta that exist already (as after
// loading in fp32) are averaged unscaled and lose precision.
void dry_run(OnebitLamb& o) {
  if (o.frozen) set_scaling(o);
  auto fused = fused_momenta(o);
  average(o, fused);
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    OnebitLamb::Rank& rank = o.ranks[r];
    std::copy_n(fused[r].begin(), o.compressing.elements(), rank.m.begin());
    keep_tail(o, rank, fused[r]);
  }
  o.errors = error_feedback(o.compressing.elements(), o.world.ranks);
  o.dry_run_pending = o.frozen = false;
}

// Returns the tensors before the first one that never freezes.
TensorLayout compressing_tensors(const World& world) {
  const auto& never = world.non_freeze;
  const auto first = std::find(never.begin(), never.end(), true);
  if (std::find(first, never.end(), false) != never.end()) {
    fail_input(Where{"", 0, "non_freeze"}, "must name the last tensors of 1-bit LAMB");
  }
  if (first != never.end() && world.quirks.persistent_tail) {
    fail_input(Where{"", 0, "non_freeze"}, "does not go with padding that persists");
  }
  const auto tensors =
      never.empty() ? world.tensors.tensors() : static_cast<std::size_t>(first - never.begin());
  const auto& offsets = world.tensors.offsets;
  return {{offsets.begin(), offsets.begin() + static_cast<std::ptrdiff_t>(tensors) + 1}};
}

}  // namespace

OnebitLamb onebit_lamb(const World& world, const OnebitLambOptions& options) {
  check(world);
  check_freeze_step("freeze_step", options.freeze_step, world.quirks.dry_run);
  const std::size_t elements = world.tensors.elements(), tensors = world.tensors.tensors();
  const TensorLayout compressing = compressing_tensors(world);
  OnebitLamb o{.world = world,
               .options = options,
               .compressing = compressing,
               .ranks = {},
               .errors = error_feedback(compressing.elements(), world.ranks),
               .step = world.quirks.dry_run == DryRun::at_construction ? 1 : 0,
               .dry_run_pending = world.quirks.dry_run == DryRun::on_first_gradient,
               .scales = {}};
  const std::vector<float> zero(elements);
  o.options.lamb.bias_correction = BiasCorrection::none;
  const std::size_t tail =
      world.quirks.persistent_tail ? o.errors.layout.padded - elements : std::size_t{0};
  o.ranks.assign(world.size(), {world.initial,
                                zero,
                                zero,
                                zero,
                                std::vector<float>(tail),
                                std::vector<reference::RunningCoefficient>(tensors),
                                std::vector<float>(tensors, 1.0f),
                                {}});
  return o;
}

Step step(OnebitLamb& o, Gradients gradients) {
  const bool averaged = o.engine_allreduce;
  auto seen = reduce(o.world, gradients, averaged);
  if (!seen) return Step::skipped;
  ++o.step;
  if (o.dry_run_pending) {
    dry_run(o);
    return Step::dry_run;
  }
  if (o.frozen) {
    compressed(o, *seen);
    return Step::onebit;
  }
  warm_up(o, *seen);
  return averaged ? Step::full : Step::silent;
}

void begin_compression(OnebitLamb& o) {
  LAMBCAST_CHECK(o.step > 0, "no step was taken that a variance could come from");
  if (o.frozen) return;
  o.options.freeze_step = o.step;
  freeze(o);
}

void resume_as_deepspeed(OnebitLamb& o) {
  o.errors = error_feedback(o.compressing.elements(), o.world.ranks);
  for (auto& rank : o.ranks) std::fill(rank.tail.begin(), rank.tail.end(), 0.0f);
  o.dry_run_pending = o.world.quirks.dry_run == DryRun::on_first_gradient;
  o.frozen = o.step >= o.options.freeze_step;
  o.engine_allreduce = !o.frozen;
  if (o.frozen) return;
  for (auto& rank : o.ranks) {
    std::fill(rank.running.begin(), rank.running.end(), reference::RunningCoefficient{});
    std::fill(rank.last_factor.begin(), rank.last_factor.end(), 1.0f);
    rank.scaling.clear();
  }
}

}  // namespace lambcast::emulated
