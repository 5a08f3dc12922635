#include "kernels/emulated_world/local_steps.h"

#include "kernels/reference/adam.h"
#include "sim/base/error.h"

namespace lambcast::emulated {
namespace {

void inner_step(LocalSteps& o, LocalSteps::Rank& rank, const std::vector<float>& g) {
  const TensorLayout& tensors = o.world.tensors;
  for (std::size_t t = 0; t < tensors.tensors(); ++t) {
    const AdamOptions options = in_group(o.options, o.world.group_of, t);
    const auto p = tensors.view(std::span(rank.p), t);
    const auto gradient = tensors.view(std::span(g), t);
    if (o.inner == Inner::adam) {
      reference::adam_step(p, tensors.view(std::span(rank.m), t),
                           tensors.view(std::span(rank.v), t), gradient, options, o.step);
      continue;
    }
    const float lr = static_cast<float>(options.lr), wd = static_cast<float>(options.weight_decay);
    for (std::size_t e = 0; e < p.size(); ++e) p[e] -= lr * (gradient[e] + wd * p[e]);
  }
}

void meet(LocalSteps& o) {
  std::vector<std::span<float>> replicas;
  for (auto& rank : o.ranks) replicas.emplace_back(rank.p);
  if (o.graph) {
    const int call = o.step / o.interval - 1;
    o.wire = average_with_neighbours(*o.graph, static_cast<std::size_t>(call), replicas,
                                     WireFormat::fp32);
    return;
  }
  o.wire = plain_allreduce(replicas, WireFormat::fp32);
  reference::outer_step(o.anchor, o.ranks[0].p, o.velocity, o.outer);
  for (auto& rank : o.ranks) rank.p = o.anchor;
}

}  // namespace

LocalSteps local_steps(const World& world, Inner inner, const AdamOptions& options, int interval,
                       const reference::OuterOptions& outer) {
  check(world);
  if (interval < 1) fail_input(Where{"", 0, "interval"}, "must be at least 1");
  const std::vector<float> zero(world.initial.size());
  return {.world = world,
          .inner = inner,
          .options = options,
          .outer = outer,
          .interval = interval,
          .ranks = std::vector(world.size(), LocalSteps::Rank{world.initial, zero, zero}),
          .anchor = world.initial,
          .velocity = outer.momentum != 0 ? zero : std::vector<float>(),
          .step = 0,
          .wire = {},
          .graph = {}};
}

LocalSteps neighbour_steps(const World& world, Inner inner, const AdamOptions& options,
                           Graph graph) {
  LocalSteps o = local_steps(world, inner, options, 1, {});
  o.graph = graph;
  return o;
}

Step step(LocalSteps& o, Gradients gradients) {
  const auto seen = reduce(o.world, gradients, false);
  if (!seen) return Step::skipped;
  ++o.step;
  for (std::size_t r = 0; r < o.ranks.size(); ++r) inner_step(o, o.ranks[r], (*seen)[r]);
  if (o.step % o.interval != 0) return Step::silent;
  meet(o);
  return Step::full;
}

}  // namespace lambcast::emulated
