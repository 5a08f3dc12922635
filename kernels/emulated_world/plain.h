// Plain Adam, LAMB and Lion over n ranks, with one full-precision average of the gradients per
// step. All ranks have the same state, so it is stored once.
#pragma once

#include "kernels/emulated_world/world.h"
#include "kernels/reference/lion.h"

namespace lambcast::emulated {

struct Adam {
  World world;
  AdamOptions options;
  std::vector<float> p, m, v;
  int step = 0;
};

struct Lamb {
  World world;
  LambOptions options;
  std::vector<float> p, m, v;
  int step = 0;
};

struct Lion {
  World world;
  reference::LionOptions options;
  std::vector<float> p, m;
};

Adam adam(const World& world, const AdamOptions& options);
Lamb lamb(const World& world, const LambOptions& options);
Lion lion(const World& world, const reference::LionOptions& options);

Step step(Adam& optimizer, Gradients gradients);
Step step(Lamb& optimizer, Gradients gradients);
Step step(Lion& optimizer, Gradients gradients);

inline std::span<const float> weights(const Adam& optimizer, int) { return optimizer.p; }
inline std::span<const float> weights(const Lamb& optimizer, int) { return optimizer.p; }
inline std::span<const float> weights(const Lion& optimizer, int) { return optimizer.p; }

}  // namespace lambcast::emulated
