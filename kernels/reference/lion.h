// CPU reference of Lion, elementwise on any flat range:
//
//   c = b1 m + (1 - b1) g;   p = p - lr (sign(c) + wd p);   m = b2 m + (1 - b2) g
//
// Each element moves by lr for any gradient, so lr is a third to a tenth of Adam's. Source:
// arXiv:2302.06675, algorithm 2. DeepSpeed's kernel treats a c of zero as negative; here it moves
// nothing.
#pragma once

#include <span>

namespace lambcast::reference {

struct LionOptions {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;
};

void lion_step(std::span<float> p, std::span<float> m, std::span<const float> g,
               const LionOptions& options);

}  // namespace lambcast::reference
