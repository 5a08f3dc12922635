// compressed_allreduce inside a step: its messages (sim/collectives/compressed_exchange.h) with the
// kernels and copies around them, in order.
//
//   worker kernels, signs and scales scattered, server kernels, signs and scales gathered, decode
//
// The mpi backend without cuda_aware copies through pageable host memory before each phase what
// kernels/staging.h lists; with it MPI stages (n-1)/n of the signs of each phase.
#pragma once

#include <vector>

#include "models/training/plan/step_part.h"

namespace lambcast {

// `padded` elements of one buffer.
std::vector<StepPart> compressed_allreduce(OptimizerType optimizer, Backend backend,
                                           Kernels kernels, const ProcessGroup& group,
                                           std::int64_t padded);

}  // namespace lambcast
