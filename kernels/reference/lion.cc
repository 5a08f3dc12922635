#include "kernels/reference/lion.h"

#include "sim/base/check.h"

namespace lambcast::reference {

void lion_step(std::span<float> p, std::span<float> m, std::span<const float> g,
               const LionOptions& options) {
  LAMBCAST_CHECK(m.size() == p.size() && g.size() == p.size(),
                 "{} weights, {} momenta, {} gradients", p.size(), m.size(), g.size());
  const auto lr = static_cast<float>(options.lr), wd = static_cast<float>(options.weight_decay);
  const auto b1 = static_cast<float>(options.beta1), b2 = static_cast<float>(options.beta2);
  const auto new_in_b1 = static_cast<float>(1 - options.beta1);
  const auto new_in_b2 = static_cast<float>(1 - options.beta2);
  for (std::size_t i = 0; i < p.size(); ++i) {
    const float mixed = b1 * m[i] + new_in_b1 * g[i];
    const float sign = mixed > 0 ? 1.0F : mixed < 0 ? -1.0F : 0.0F;
    p[i] -= lr * (sign + wd * p[i]);
    m[i] = b2 * m[i] + new_in_b2 * g[i];
  }
}

}  // namespace lambcast::reference
