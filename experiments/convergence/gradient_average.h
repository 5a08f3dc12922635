// The gradient exchanges of the study. Each replaces the gradients of all ranks by their average at
// the precision of the exchange, and keeps the error feedback between calls.
#pragma once

#include <functional>

#include "experiments/convergence/training.h"
#include "kernels/emulated_world/exchange/wire.h"

namespace lambcast::convergence {

using GradientAverage = std::function<void(emulated::Buffers)>;
// Returns an empty function for an exchange that leaves gradients unchanged.
GradientAverage gradient_average(const text::Transformer& model, int ranks, Exchange exchange);

}  // namespace lambcast::convergence
