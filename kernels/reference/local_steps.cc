#include "kernels/reference/local_steps.h"

#include "sim/base/check.h"

namespace lambcast::reference {

void outer_step(std::span<float> anchor, std::span<const float> mean, std::span<float> velocity,
                const OuterOptions& o) {
  LAMBCAST_CHECK(
      anchor.size() == mean.size() && velocity.size() == (o.momentum != 0 ? anchor.size() : 0),
      "{}, {} and {} elements", anchor.size(), mean.size(), velocity.size());
  const float lr = static_cast<float>(o.lr), momentum = static_cast<float>(o.momentum);
  for (std::size_t e = 0; e < anchor.size(); ++e) {
    float step = anchor[e] - mean[e];
    if (o.momentum != 0) {
      velocity[e] = momentum * velocity[e] + step;
      step = o.nesterov ? step + momentum * velocity[e] : velocity[e];
    }
    anchor[e] -= lr * step;
  }
}

void weighted_sum(std::span<const std::span<const float>> buffers, std::span<const float> weights,
                  std::span<float> x) {
  LAMBCAST_CHECK(buffers.size() == weights.size(), "{} buffers, {} weights", buffers.size(),
                 weights.size());
  for (std::size_t e = 0; e < x.size(); ++e) {
    float sum = 0;
    for (std::size_t i = 0; i < buffers.size(); ++i) sum += weights[i] * buffers[i][e];
    x[e] = sum;
  }
}

}  // namespace lambcast::reference
