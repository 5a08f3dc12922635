// The exchanges of the study at work: what replaces the gradients of all ranks by their average, as
// far as the exchange says it, and keeps what it owes from call to call.
#pragma once

#include <functional>

#include "experiments/convergence/training.h"
#include "kernels/emulated_world/exchange/wire.h"

namespace lambcast::convergence {

using GradientAverage = std::function<void(emulated::Buffers)>;
// Nothing for an exchange that leaves gradients as they are.
GradientAverage gradient_average(const text::Transformer& model, int ranks, Exchange exchange);

}  // namespace lambcast::convergence
