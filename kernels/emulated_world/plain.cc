#include "kernels/emulated_world/plain.h"

#include "kernels/reference/adam.h"
#include "kernels/reference/lamb.h"

namespace lambcast::emulated {

Adam adam(const World& world, const AdamOptions& options) {
  check(world);
  const std::vector<float> zero(world.initial.size());
  return {world, options, world.initial, zero, zero, 0};
}

Lamb lamb(const World& world, const LambOptions& options) {
  check(world);
  const std::vector<float> zero(world.initial.size());
  return {world, options, world.initial, zero, zero, 0};
}

Step step(Adam& o, Gradients gradients) {
  const auto g = reduce(o.world, gradients, true);
  if (!g) return Step::skipped;
  ++o.step;
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    reference::adam_step(tensors.view(std::span(o.p), t), tensors.view(std::span(o.m), t),
                         tensors.view(std::span(o.v), t),
                         tensors.view(std::span<const float>(g->front()), t),
                         in_group(o.options, o.world.group_of, t), o.step);
  }
  return Step::full;
}

Step step(Lamb& o, Gradients gradients) {
  const auto g = reduce(o.world, gradients, true);
  if (!g) return Step::skipped;
  ++o.step;
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    reference::lamb_step(tensors.view(std::span(o.p), t), tensors.view(std::span(o.m), t),
                         tensors.view(std::span(o.v), t),
                         tensors.view(std::span<const float>(g->front()), t),
                         in_group(o.options, o.world.group_of, t), o.step);
  }
  return Step::full;
}

}  // namespace lambcast::emulated
