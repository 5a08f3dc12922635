// The Adam family on the GPU, elementwise over flat buffers: the semantics of reference/adam.h, to
// the bit. One launch each, whatever the number of tensors.
//
// 1-bit Adam: adam_step in warm-up, and in both stages for the groups that never freeze, on their
// averaged gradient; else worker_phase of the momentum, decode with the mask, adam_apply.
// `lrs` of zero_one_sync_end must not be 0: where nothing has moved there is nothing to
// synchronise.
//
// Where tensors belong to groups of their own, `runs` cuts the buffers into stretches of one group:
// still one launch.
//
// Where Unseen says that elements of v = 0 stay, no memory is moved for it: adam_apply writes m
// only where it must set it to 0.
//
// The learning rate may lie in device memory, so that a CUDA graph that replays a step takes the
// one of the day: `lr`, and for 0/1 Adam `lrs`, its sum since the last synchronisation, to which
// zero_one_local_step adds and which zero_one_sync_end sets to 0.
//
// `half_p`, where not null, receives the fp16 or bf16 copy of the weights. Bytes per element (with
// it, 2 more): adam_step 28, adam_apply 16, zero_one_onebit_step 24, zero_one_local_step 32,
// zero_one_sync_begin 20, zero_one_sync_end 24.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <span>
#include <vector>

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

cudaError_t adam_step(const AdamState& state, const float* g, const AdamOptions& options, int step,
                      cudaStream_t stream);
cudaError_t adam_apply(const AdamState& state, const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_onebit_step(const AdamState& state, const float* averaged_g,
                                 const AdamOptions& options, cudaStream_t stream);
cudaError_t zero_one_local_step(const AdamState& state, const float* g, const AdamOptions& options,
                                cudaStream_t stream);
cudaError_t zero_one_sync_begin(const AdamState& state, const AdamOptions& options,
                                cudaStream_t stream);
cudaError_t zero_one_sync_end(const AdamState& state, double lrs, const AdamOptions& options,
                              cudaStream_t stream);

}  // namespace lambcast::cuda
