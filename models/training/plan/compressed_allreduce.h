// compressed_allreduce inside a step: its messages (sim/collectives/compressed_exchange.h) with the
// kernels and copies around them, in order.
//
//   worker kernels, signs and scales scattered, server kernels, signs and scales gathered, decode
//
// In two levels (exchange_levels.h) the node first sums gradients, from which the ranks that
// exchange update their momentum, and at the end all of its ranks receive the served signs and
// scales.
//
// The mpi backend without cuda_aware copies through pageable host memory before each phase what
// kernels/staging.h lists; with it MPI stages (n-1)/n of the signs of each phase.
#pragma once

#include <vector>

#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/step_part.h"

namespace lambcast {

// Padded elements of one rank's share of `elements` momenta.
std::int64_t padded_share(const ExchangeLevels& levels, double elements);

// One buffer of momenta whose shares have `padded` elements. In the node travel gradients of
// `gradient` bytes.
std::vector<StepPart> compressed_allreduce(OptimizerType optimizer, Backend backend,
                                           Kernels kernels, const ExchangeLevels& levels,
                                           std::int64_t padded, double gradient);

}  // namespace lambcast
