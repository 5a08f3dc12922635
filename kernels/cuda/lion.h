// Lion on the GPU, elementwise over flat buffers; bit for bit the results of reference/lion.h. One
// launch for any number of tensors; groups and a learning rate in device memory as in adam.h.
//
// Bytes per element: lion_step 20 (read g, p, m; write p, m), with the 16-bit copy of the weights
// 22. A gradient in 16 bits saves 2.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/adam.h"
#include "kernels/reference/lion.h"

namespace lambcast::cuda {

struct LionState {
  float* p = nullptr;
  float* m = nullptr;
  HalfPointer half_p;
  std::size_t elements = 0;
  const GroupRun* runs =
      nullptr;                 // device memory, up to `elements`; null: the options apply to all
  const double* lr = nullptr;  // device memory; null: the options' rate
};

cudaError_t lion_step(const LionState& state, const Gradient& g,
                      const reference::LionOptions& options, cudaStream_t stream);

}  // namespace lambcast::cuda
