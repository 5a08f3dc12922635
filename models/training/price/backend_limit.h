// Backends of DeepSpeed that cannot run on a cluster.
//
//   compressed         its constructor loads PackbitsBuilder, an operator that DeepSpeed has only
//                      for Intel XPU; all devices here are GPUs of NVIDIA
//   mpi with cuda_aware  passes device buffers to MPI, which sends them by RDMA (InfiniBand, RoCE,
//                        EFA); DeepSpeed's tutorial names InfiniBand, and not TCP
//
// Sources: deepspeed/runtime/comm/compressed.py, op_builder/xpu/packbits.py, and DeepSpeed's
// tutorial on 1-bit Adam (0.16.5).
#pragma once

#include <optional>
#include <string>

#include "models/finding.h"
#include "models/training/plan/training_plan.h"

namespace lambcast {

// Returns why the backend of a 1-bit run fails on this cluster, in words; nothing if it runs.
std::optional<std::string> why_backend_fails(const TrainingPlan& training);

// Returns the same reason as a warning.
std::optional<Finding> find_backend_that_fails(const TrainingPlan& training);

}  // namespace lambcast
