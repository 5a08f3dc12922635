// compressed_allreduce in a step: its messages (sim/collectives/compressed_exchange.h) with the
// kernels and copies around them, in order.
//
//   worker kernels, signs and scales scattered, server kernels, signs and scales gathered, decode
//
// On two levels (exchange_levels.h) the node first sums gradients, which update the momentum of the
// exchanging ranks. At the end all ranks of the node receive the averaged signs and scales.
//
// Without cuda_aware, the mpi backend makes the copies listed in kernels/staging.h through pageable
// host memory before each phase; with it, MPI stages (n-1)/n of the signs of each phase.
#pragma once

#include <vector>

#include "models/training/plan/exchange_levels.h"
#include "models/training/plan/step_part.h"

namespace lambcast {

// Returns the padded elements of one rank's share of `elements` momenta.
std::int64_t padded_share(const ExchangeLevels& levels, double elements);

// Returns the operations on one buffer of momenta, whose shares have `padded` elements each.
// Gradients summed in the node have `gradient` bytes per element.
std::vector<StepPart> compressed_allreduce(OptimizerType optimizer, Backend backend,
                                           Kernels kernels, const ExchangeLevels& levels,
                                           std::int64_t padded, double gradient);

}  // namespace lambcast
