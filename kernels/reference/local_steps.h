// CPU reference of the exchanges between ranks that mostly step separately.
//
// The outer step of local SGD and DiLoCo, every H inner steps, from the common anchor a and the
// mean of the current weights:
//
//   d = a - mean;   u = momentum u + d;   a = a - lr (nesterov ? d + momentum u : u)
//
// With lr 1 and momentum 0 this is the mean itself: local SGD. The average with neighbours is a
// weighted sum with weights that add up to 1.
//
// Sources: local SGD arXiv:1805.09767; DiLoCo arXiv:2311.08105, algorithm 1 (outer lr 0.7, Nesterov
// momentum 0.9).
#pragma once

#include <span>

namespace lambcast::reference {

struct OuterOptions {
  double lr = 1;
  double momentum = 0;
  bool nesterov = false;
};

// `velocity` is empty without momentum.
void outer_step(std::span<float> anchor, std::span<const float> mean, std::span<float> velocity,
                const OuterOptions& options);

// x = sum_i weights[i] buffers[i], summed in order.
void weighted_sum(std::span<const std::span<const float>> buffers, std::span<const float> weights,
                  std::span<float> x);

}  // namespace lambcast::reference
