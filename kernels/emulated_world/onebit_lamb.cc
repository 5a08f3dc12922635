#include "kernels/emulated_world/onebit_lamb.h"

#include <algorithm>

#include "kernels/reference/compression.h"

namespace lambcast::emulated {
namespace {

template <typename T>
std::span<T> part(const TensorLayout& tensors, std::vector<std::remove_const_t<T>>& flat,
                  std::size_t t) {
  return tensors.view(std::span<T>(flat.data(), tensors.elements()), t);
}

void warm_up(OnebitLamb& o, std::vector<std::vector<float>>& gradients) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    OnebitLamb::Rank& rank = o.ranks[r];
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      const auto ratio =
          reference::lamb_step(part<float>(tensors, rank.p, t), part<float>(tensors, rank.m, t),
                               part<float>(tensors, rank.v, t),
                               part<const float>(tensors, gradients[r], t), o.options.lamb);
      reference::add(rank.running[t], ratio, o.options.coeff_beta,
                     o.world.quirks.coefficient_average);
    }
  }
  const bool freeze = o.step >= o.options.freeze_step;
  const bool equal = o.step == o.options.freeze_step;
  if (o.world.quirks.fresh_variance_on_equality ? equal : freeze) {
    for (auto& rank : o.ranks) rank.fresh_v = rank.v;
  }
  o.frozen = freeze;
}

void set_scaling(OnebitLamb& o) {
  for (auto& rank : o.ranks) {
    if (rank.scaling.empty()) {
      rank.scaling = reference::scaling_coefficients(rank.m, o.world.tensors,
                                                     o.world.quirks.zero_momentum_fails);
    }
  }
}

// The fused buffer of every rank: its new local momentum, scaled, and the tail where it persists.
std::vector<std::vector<float>> local_momenta(const OnebitLamb& o,
                                              std::vector<std::vector<float>>& gradients) {
  const TensorLayout& tensors = o.world.tensors;
  std::vector<std::vector<float>> fused;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) {
    const OnebitLamb::Rank& rank = o.ranks[r];
    std::vector<float> m = rank.m;
    for (std::size_t t = 0; t < tensors.tensors(); ++t) {
      reference::update_momentum(part<float>(tensors, m, t),
                                 part<const float>(tensors, gradients[r], t), o.options.lamb.beta1,
                                 rank.scaling[t]);
    }
    m.insert(m.end(), rank.tail.begin(), rank.tail.end());
    fused.push_back(std::move(m));
  }
  return fused;
}

void compressed(OnebitLamb& o, std::vector<std::vector<float>>& gradients) {
  set_scaling(o);
  auto fused = local_momenta(o, gradients);
  if (o.world.ranks > 1) {
    const std::vector<std::span<float>> buffers(fused.begin(), fused.end());
    o.scales = compressed_allreduce(buffers, o.errors, o.world.quirks.padding);
  }
  const TensorLayout& tensors = o.world.tensors;
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
          rank.last_factor[t], o.options);
    }
    std::copy(fused[r].begin() + static_cast<std::ptrdiff_t>(tensors.elements()), fused[r].end(),
              rank.tail.begin());
  }
}

}  // namespace

OnebitLamb onebit_lamb(const World& world, const OnebitLambOptions& options) {
  check(world);
  check_freeze_step("freeze_step", options.freeze_step, world.quirks.dry_run);
  const std::size_t elements = world.tensors.elements(), tensors = world.tensors.tensors();
  OnebitLamb o{.world = world,
               .options = options,
               .ranks = {},
               .errors = error_feedback(elements, world.ranks),
               .step = world.quirks.dry_run == DryRun::at_construction ? 1 : 0,
               .dry_run_pending = world.quirks.dry_run == DryRun::on_first_gradient,
               .scales = {}};
  const std::vector<float> zero(elements);
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
  if (o.dry_run_pending) {
    o.dry_run_pending = false;
    o.step = 1;
    return Step::dry_run;
  }
  auto seen = reduce(o.world, gradients, !o.frozen);
  if (!seen) return Step::skipped;
  ++o.step;
  if (o.frozen) {
    compressed(o, *seen);
    return Step::onebit;
  }
  warm_up(o, *seen);
  return Step::full;
}

void resume_as_deepspeed(OnebitLamb& o) {
  o.errors = error_feedback(o.world.tensors.elements(), o.world.ranks);
  for (auto& rank : o.ranks) std::fill(rank.tail.begin(), rank.tail.end(), 0.0f);
  if (o.step >= o.options.freeze_step) return;
  o.frozen = false;
  for (auto& rank : o.ranks) {
    std::fill(rank.running.begin(), rank.running.end(), reference::RunningCoefficient{});
    std::fill(rank.last_factor.begin(), rank.last_factor.end(), 1.0f);
    rank.scaling.clear();
  }
}

}  // namespace lambcast::emulated
