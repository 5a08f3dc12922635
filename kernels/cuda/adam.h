// The Adam family on the GPU, elementwise over flat buffers: the semantics of reference/adam.h, to
// the bit. Each step is one launch for any number of tensors.
//
// 1-bit Adam: adam_step in warm-up, and in both stages for the groups that never freeze, on their
// averaged gradient. The other groups take worker_phase of the momentum and onebit_adam_step, which
// decodes the average itself. adam_apply is for a momentum that is in memory already.
//
// 0/1 Adam averages the gradient or u. With one rank the average is in memory, else it is packed
// and the step decodes it. zero_one_sync_begin takes the local step in the same pass.
//
// `lrs` of zero_one_sync_end must not be 0: if nothing has moved, there is nothing to synchronise.
//
// If tensors belong to several groups, `runs` cuts the buffers into runs of one group, still in one
// launch.
//
// Unseen::stay moves no memory for elements of v = 0, except that adam_apply writes m if it must
// set an element to 0.
//
// The learning rate may lie in device memory, so that a CUDA graph replays a step with the present
// rate: `lr`, and for 0/1 Adam `lrs`, its sum since the last synchronisation. zero_one_local_step
// and zero_one_sync_begin add to it, and zero_one_sync_end sets it to 0.
//
// `half_p`, if not null, receives the fp16 or bf16 copy of the weights. Bytes per element (2 more
// with it): adam_step 28, adam_apply 16, onebit_adam_step 16.125, zero_one_onebit_step 24,
// zero_one_local_step 32, zero_one_sync_begin 32, zero_one_sync_end 24; with a packed average
// zero_one_onebit_step and zero_one_sync_end 20.125. A gradient in 16 bits saves 2.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/cuda/compression.h"
#include "kernels/cuda/half_precision.h"
#include "kernels/options.h"

namespace lambcast::cuda {

// The elements up to `end`, from where the run before ended, are of one group.
struct GroupRun {
  std::size_t end = 0;
  ParameterGroup group;
};
// Tensors that follow each other share a run where their groups are alike.
std::vector<GroupRun> group_runs(const TensorLayout& tensors,
                                 std::span<const ParameterGroup> group_of);

struct AdamState {
  float* p = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  float* u = nullptr;  // 0/1 Adam only
  HalfPointer half_p;
  std::size_t elements = 0;
  const GroupRun* runs =
      nullptr;                 // device memory, up to `elements`; null: the options hold for all
  const double* lr = nullptr;  // device memory; null: as the options say
  double* lrs = nullptr;       // device memory; null: as the argument says
  Unseen unseen = Unseen::stay;
};

cudaError_t adam_step(const AdamState& state, const Gradient& g, const AdamOptions& options,
                      int step, cudaStream_t stream);
cudaError_t adam_apply(const AdamState& state, const AdamOptions& options, cudaStream_t stream);
// m becomes the average, then as adam_apply.
cudaError_t onebit_adam_step(const AdamState& state, const PackedAverage& m,
                             const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_onebit_step(const AdamState& state, const Gradient& averaged_g,
                                 const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_onebit_step(const AdamState& state, const PackedAverage& g,
                                 const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_local_step(const AdamState& state, const Gradient& g,
                                const AdamOptions& options, cudaStream_t stream);
// A local step, after which u is what is to be averaged.
cudaError_t zero_one_sync_begin(const AdamState& state, const Gradient& g,
                                const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_sync_end(const AdamState& state, double lrs, const AdamOptions& options,
                              cudaStream_t stream);
cudaError_t zero_one_sync_end(const AdamState& state, const PackedAverage& u, double lrs,
                              const AdamOptions& options, cudaStream_t stream);

}  // namespace lambcast::cuda
