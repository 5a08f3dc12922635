// Trains an emulated optimizer on one of the iris problems: rank r of n reads rows r, r + n, ...
#pragma once

#include <algorithm>
#include <vector>

#include "kernels/emulated_world/iris.h"
#include "kernels/emulated_world/world.h"

namespace lambcast::emulated {

inline World world_of(const iris::Problem& problem, int ranks, Quirks quirks = {}) {
  World world;
  world.tensors = problem.tensors;
  world.ranks = ranks;
  world.initial = problem.initial;
  world.quirks = quirks;
  return world;
}

// Returns each rank's own gradient at its own weights.
template <typename Optimizer>
std::vector<std::vector<float>> gradients(const iris::Problem& problem,
                                          const Optimizer& optimizer) {
  std::vector<std::vector<float>> all;
  for (int r = 0; r < optimizer.world.ranks; ++r) {
    all.emplace_back(problem.tensors.elements());
    problem.loss(weights(optimizer, r), static_cast<std::size_t>(r), optimizer.world.size(),
                 all.back());
  }
  return all;
}

// `lr` maps the completed fraction of training to a learning rate, which is set by `set_lr`.
template <typename Optimizer, typename SetLr>
double train(const iris::Problem& problem, Optimizer& optimizer, int steps, double peak_lr,
             SetLr set_lr) {
  for (int k = 0; k < steps; ++k) {
    set_lr(optimizer, peak_lr * (1 - static_cast<double>(k) / steps));
    step(optimizer, gradients(problem, optimizer));
  }
  return problem.loss(weights(optimizer, 0), 0, 1, {});
}

}  // namespace lambcast::emulated
