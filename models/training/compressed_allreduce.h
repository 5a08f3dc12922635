// compressed_allreduce inside a step: its messages (sim/collectives/compressed_exchange.h) with the
// kernels and copies around them, in order.
//
//   worker kernels, signs and scales scattered, server kernels, signs and scales gathered, decode
//
// The mpi backend without cuda_aware copies through pageable host memory: 2 Np/8 + Np/8n bytes down
// and 3 Np/8 + Np/8n up, in 2n + 13 copies, and a barrier of MPI follows what it gathered; with it
// MPI stages (n-1)/n of the signs of each phase.
#pragma once

#include <vector>

#include "models/training/training_plan.h"
#include "models/training/work.h"
#include "sim/engine/task_graph.h"

namespace lambcast {

struct ExchangePart {
  std::string name;
  Category part = Category::gradient_comm;
  Work work;
};

std::vector<ExchangePart> compressed_allreduce(const TrainingPlan& training,
                                               const ProcessGroup& group, std::int64_t padded);

}  // namespace lambcast
