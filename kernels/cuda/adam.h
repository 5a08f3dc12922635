// The Adam family on the GPU, elementwise over flat buffers; bit for bit the results of
// reference/adam.h. Each step is one launch for any number of tensors.
//
// 1-bit Adam: call adam_step in warm-up, and in both stages for the groups that never freeze, with
// their averaged gradient. The other groups use worker_phase of the momentum and onebit_adam_step,
// which decodes the average itself. adam_apply is for a momentum that is already in memory.
//
// 0/1 Adam averages the gradient or u. With one rank the average is in memory; otherwise it is
// packed and the step decodes it. zero_one_sync_begin includes the local step in its pass.
//
// `lrs` of zero_one_sync_end must not be 0: if nothing has moved, there is nothing to synchronise.
//
// If tensors belong to several groups, `runs` divides the buffers into runs of one group each; it
// is still one launch.
//
// With Unseen::stay, elements with v = 0 move no memory, except that adam_apply writes m if it must
// set an element to 0.
//
// The learning rate may be in device memory, so that a CUDA graph replays a step with the current
// rate: `lr`, and for 0/1 Adam `lrs`, its sum since the last synchronisation. zero_one_local_step
// and zero_one_sync_begin add to it, and zero_one_sync_end sets it to 0.
//
// `half_p`, if not null, receives the fp16 or bf16 copy of the weights. Bytes per element (2 more
// with half_p): adam_step 28, adam_apply 16, onebit_adam_step 16.125, zero_one_onebit_step 24,
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

// The elements of one group, from the end of the previous run up to `end`.
struct GroupRun {
  std::size_t end = 0;
  ParameterGroup group;
};
// Returns the runs of one group. Adjacent tensors with equal groups share a run.
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
      nullptr;                 // device memory, up to `elements`; null: the options apply to all
  const double* lr = nullptr;  // device memory; null: the options' rate
  double* lrs = nullptr;       // device memory; null: the sum in the argument
  Unseen unseen = Unseen::stay;
};

cudaError_t adam_step(const AdamState& state, const Gradient& g, const AdamOptions& options,
                      int step, cudaStream_t stream);
cudaError_t adam_apply(const AdamState& state, const AdamOptions& options, cudaStream_t stream);
// Sets m to the average, then works as adam_apply.
cudaError_t onebit_adam_step(const AdamState& state, const PackedAverage& m,
                             const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_onebit_step(const AdamState& state, const Gradient& averaged_g,
                                 const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_onebit_step(const AdamState& state, const PackedAverage& g,
                                 const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_local_step(const AdamState& state, const Gradient& g,
                                const AdamOptions& options, cudaStream_t stream);
// Makes a local step, after which u is to be averaged.
cudaError_t zero_one_sync_begin(const AdamState& state, const Gradient& g,
                                const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_sync_end(const AdamState& state, double lrs, const AdamOptions& options,
                              cudaStream_t stream);
cudaError_t zero_one_sync_end(const AdamState& state, const PackedAverage& u, double lrs,
                              const AdamOptions& options, cudaStream_t stream);

}  // namespace lambcast::cuda
