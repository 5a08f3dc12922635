// 1-bit LAMB over n ranks, with its two stages.
//
// Warm-up: LAMB on averaged gradients, each tensor keeping a running average of its trust ratio.
// At the freeze: the variance stops, the coefficients are fixed, the gradient all-reduce stops.
// Compression: every rank updates its momentum with its own gradient, scaled per tensor; one
// compressed_allreduce averages the momenta of all tensors; see reference/lamb.h for the rest.
//
// Tensors that never freeze (DeepSpeed's 1-bit LAMB has none, its 1-bit Adam does) stay out of the
// compression and go on with LAMB, on gradients averaged in full precision after clipping. They
// stand behind all others, so that what is compressed is one stretch of the flat buffers.
//
// One rank alone does not communicate and so does not compress. The state of every rank is kept
// apart although it stays equal: that it does is what the tests check.
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
    std::vector<float> tail;  // padding of the fused buffer, where it persists
    std::vector<reference::RunningCoefficient> running;  // per tensor
    std::vector<float> last_factor, scaling;             // per tensor; scaling empty until needed
  };

  World world;
  OnebitLambOptions options;
  TensorLayout compressing;  // the tensors in front of those that never freeze
  std::vector<Rank> ranks;
  ErrorFeedback errors;
  int step = 0;
  bool frozen = false;
  bool engine_allreduce = true;  // the engine averages the gradients
  bool dry_run_pending = false;
  Scales scales;  // of the last compressed step, for inspection
};

// Throws Error if a tensor that freezes follows one that does not, or if the padding persists with
// tensors that never freeze.
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
// without coefficients and scaling. In fp32 (DryRun::on_first_gradient) the dry run comes after
// loading. It quantises the loaded momenta, unscaled, and past the freeze each rank then takes one
// warm-up step on its own gradient, so that the replicas diverge for good. A right resume is a copy
// of the optimizer.
void resume_as_deepspeed(OnebitLamb& optimizer);

}  // namespace lambcast::emulated
