#include "kernels/emulated_world/world.h"

#include <algorithm>
#include <cmath>

#include "kernels/reference/gradient.h"
#include "kernels/reference/half.h"
#include "sim/base/check.h"
#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

double root_mean_square(std::span<const double> norms) {
  double sum = 0;
  for (const double norm : norms) sum += norm * norm;
  return std::sqrt(sum / static_cast<double>(norms.size()));
}

void clip(const World& world, std::vector<std::vector<float>>& gradients) {
  if (world.gradient_clipping <= 0) return;
  std::vector<double> norms;
  for (const auto& g : gradients) {
    norms.push_back(static_cast<double>(reference::gradient_norm(std::span(g))));
  }
  const double shared = root_mean_square(norms);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    const double norm = world.quirks.clip_norm == ClipNorm::local ? norms[i] : shared;
    reference::unscale(std::span<float>(gradients[i]),
                       reference::clip_factor(norm, 1, world.gradient_clipping));
  }
}

void misscale(const World& world, bool engine_allreduce,
              std::vector<std::vector<float>>& gradients) {
  const double factor = reference::misscaling(world.quirks.loss_scaling, world.accumulation_steps,
                                              world.loss_scale, engine_allreduce);
  if (factor == 1) return;
  for (auto& g : gradients) reference::unscale(std::span<float>(g), static_cast<float>(factor));
}

}  // namespace

std::vector<float> mean(Gradients gradients) {
  const double n = static_cast<double>(gradients.size());
  std::vector<float> result(gradients[0].size());
  for (std::size_t e = 0; e < result.size(); ++e) {
    double sum = 0;
    for (const auto& g : gradients) sum += static_cast<double>(g[e]);
    result[e] = static_cast<float>(sum / n);
  }
  return result;
}

std::vector<float> half_mean(Gradients gradients, double loss_scale, reference::HalfFormat format) {
  const auto rounded = [&](double x) {
    return reference::from_half(reference::to_half(static_cast<float>(x), format), format);
  };
  const float share = static_cast<float>(1.0 / static_cast<double>(gradients.size()));
  std::vector<float> result(gradients[0].size());
  for (std::size_t e = 0; e < result.size(); ++e) {
    float sum = 0;
    for (const auto& g : gradients) sum = rounded(sum + rounded(loss_scale * g[e]));
    result[e] = static_cast<float>(rounded(sum * share) / loss_scale);
  }
  return result;
}

void check(const World& world) {
  if (world.ranks < 1) fail_input(Where{"", 0, "ranks"}, "must be at least 1");
  if (world.initial.size() != world.tensors.elements()) {
    fail_input(Where{"", 0, "initial"}, "does not have the size of the tensors");
  }
  if (!world.mask.empty() && world.mask.size() != world.tensors.elements()) {
    fail_input(Where{"", 0, "mask"}, "does not have the size of the tensors");
  }
  if (!world.group_of.empty() && world.group_of.size() != world.tensors.tensors()) {
    fail_input(Where{"", 0, "group_of"}, "does not have one entry per tensor");
  }
  for (const ParameterGroup& group : world.group_of) {
    if (!(group.lr_scale > 0)) {
      fail_input(Where{"", 0, "lr_scale"},
                 "must be more than 0: what shall not move is not given to the optimizer");
    }
  }
  if (!world.non_freeze.empty() && world.non_freeze.size() != world.tensors.tensors()) {
    fail_input(Where{"", 0, "non_freeze"}, "does not have one entry per tensor");
  }
}

void check_freeze_step(const char* key, int value, DryRun dry_run) {
  if (value < 1 && dry_run == DryRun::none) fail_input(Where{"", 0, key}, "must be at least 1");
}

std::optional<std::vector<std::vector<float>>> reduce(const World& world, Gradients gradients,
                                                      bool engine_allreduce) {
  LAMBCAST_CHECK(gradients.size() == world.size(), "{} gradients for {} ranks", gradients.size(),
                 world.size());
  const bool overflow = std::any_of(gradients.begin(), gradients.end(), [](const auto& g) {
    return reference::overflows(std::span<const float>(g));
  });
  if (overflow && !world.quirks.overflow_poisons) return std::nullopt;
  std::vector<std::vector<float>> seen(gradients.begin(), gradients.end());
  if (engine_allreduce) {
    const GradientSum how = world.quirks.gradient_sum;
    const auto format =
        how == GradientSum::bfloat16 ? reference::HalfFormat::bf16 : reference::HalfFormat::fp16;
    seen.assign(world.size(), how == GradientSum::full_precision
                                  ? mean(gradients)
                                  : half_mean(gradients, world.loss_scale, format));
  }
  misscale(world, engine_allreduce, seen);
  clip(world, seen);
  return seen;
}

}  // namespace lambcast::emulated
