#include "kernels/emulated_world/plain.h"

#include "kernels/reference/adam.h"
#include "kernels/reference/lamb.h"

namespace lambcast::emulated {
namespace {

// Calls f(tensor, its gradient, its options) for every tensor; `f` gets its part of a flat buffer
// with tensor(flat).
template <typename Optimizer, typename F>
Step on_mean_gradient(Optimizer& o, Gradients gradients, F f) {
  const auto g = reduce(o.world, gradients, true);
  if (!g) return Step::skipped;
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const auto tensor = [&](std::vector<float>& flat) { return tensors.view(std::span(flat), t); };
    f(tensor, tensors.view(std::span<const float>(g->front()), t),
      in_group(o.options, o.world.group_of, t));
  }
  return Step::full;
}

}  // namespace

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

Lion lion(const World& world, const reference::LionOptions& options) {
  check(world);
  return {world, options, world.initial, std::vector<float>(world.initial.size())};
}

Step step(Adam& o, Gradients gradients) {
  const Step did = on_mean_gradient(o, gradients, [&](auto of, auto g, const AdamOptions& options) {
    reference::adam_step(of(o.p), of(o.m), of(o.v), g, options, o.step + 1);
  });
  o.step += did == Step::full;
  return did;
}

Step step(Lamb& o, Gradients gradients) {
  const Step did = on_mean_gradient(o, gradients, [&](auto of, auto g, const LambOptions& options) {
    reference::lamb_step(of(o.p), of(o.m), of(o.v), g, options, o.step + 1);
  });
  o.step += did == Step::full;
  return did;
}

Step step(Lion& o, Gradients gradients) {
  return on_mean_gradient(o, gradients, [&](auto of, auto g, const auto& options) {
    reference::lion_step(of(o.p), of(o.m), g, options);
  });
}

}  // namespace lambcast::emulated
