// 1-bit LAMB over n ranks, with its two stages.
//
// Warm-up: LAMB on averaged gradients, with a running average of the trust ratio for each tensor.
// At the freeze the variance stops, the coefficients are fixed, and the gradient all-reduce stops.
// Compression: every rank updates its momentum with its own gradient, scaled per tensor; one
// compressed_allreduce averages the momenta of all tensors; the rest is in reference/lamb.h.
//
// Tensors that never freeze (DeepSpeed's 1-bit LAMB has none, its 1-bit Adam does) are not
// compressed and continue with LAMB, on gradients averaged in full precision after clipping. They
// follow all others, so that the compressed tensors are contiguous in the flat buffers.
//
// A single rank does not communicate and hence does not compress. Each rank has its own state, so
// that tests can check that the states stay equal.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/lamb.py; 1-bit LAMB, arXiv:2104.06069.
#pragma once

#include "kernels/emulated_world/compressed_allreduce.h"
#include "kernels/emulated_world/world.h"
#include "kernels/reference/lamb.h"

namespace lambcast::emulated {

struct OnebitLamb {
  struct Rank {
    std::vector<float> p, m, v, fresh_v;
    std::vector<float> tail;  // padding of the fused buffer, if it persists
    std::vector<reference::RunningCoefficient> running;  // per tensor
    std::vector<float> last_factor, scaling;             // per tensor; scaling empty until needed
  };

  World world;
  OnebitLambOptions options;
  TensorLayout compressing;  // the tensors before those that never freeze
  std::vector<Rank> ranks;
  ErrorFeedback errors;
  int step = 0;
  bool frozen = false;
  bool engine_allreduce = true;  // whether the engine averages the gradients
  bool dry_run_pending = false;
  Scales scales;  // scales of the last compressed step, for inspection
};

// Throws Error if a tensor that freezes follows one that does not, or if the padding persists
// together with tensors that never freeze.
OnebitLamb onebit_lamb(const World& world, const OnebitLambOptions& options);
Step step(OnebitLamb& optimizer, Gradients gradients);
// Ends the warm-up after the steps taken so far, at least one, for a monitor of the variance
// (reference/freeze.h). freeze_step becomes the number of these steps.
void begin_compression(OnebitLamb& optimizer);

inline std::span<const float> weights(const OnebitLamb& optimizer, int rank) {
  return optimizer.ranks[static_cast<std::size_t>(rank)].p;
}

// Resumes as DeepSpeed does when it loads a checkpoint into a new process. Error feedback and
// padding are lost. A step below the (possibly raised) freeze_step returns the optimizer to warm-up
// without coefficients and scaling. In fp32 (DryRun::on_first_gradient) the dry run follows the
// loading. It quantises the loaded momenta, unscaled; after the freeze each rank then takes one
// warm-up step on its own gradient, so that the replicas diverge permanently. For a correct resume,
// copy the optimizer.
void resume_as_deepspeed(OnebitLamb& optimizer);

}  // namespace lambcast::emulated
