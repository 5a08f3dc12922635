// Work around an optimizer's own update (models/optimizer): the precision wrapper
// (fused_optimizer.py, unfused_optimizer.py), with the overflow check, gradient norm, unscaling and
// the copies between fp16 and fp32, and the passes of compressed_allreduce. DeepSpeed writes these
// as separate PyTorch operations. Those of its optimizers were counted on real steps
// (kernels/deepspeed_traffic.h), the others from its source, 0.15.4.
#pragma once

#include "models/recipe/wrapper.h"
#include "models/shape/shape.h"
#include "topologies/cluster.h"

namespace lambcast {

// Returns the kernels that a software stack runs for an optimizer.
Kernels stack_kernels(const StackSpec& stack, OptimizerType type);

// The wrapper around the optimizer, per element that the rank updates, and per tensor of the model.
Passes wrapper_passes(Wrapper wrapper, OptimizerType type, Kernels kernels, const Engine& engine);

// Passes around PyTorch's own optimizers under autocast: torch.cuda.amp.GradScaler unscales 8 and
// checks for overflow, clip_grad_norm_ reads 4 and scales 8, tensor by tensor before release 2.0.
Passes autocast_passes(Kernels kernels);

// Whether the wrapper finds overflow in norms and all_reduces it over all ranks in every step,
// followed by a barrier. Plain LAMB's wrapper does, as did every one before release 0.3.1.
bool asks_all_for_overflow(Wrapper wrapper, OptimizerType type, Kernels kernels,
                           const Engine& engine);

// BF16_Optimizer instead handles the gradients of the whole model, for any share of the rank: after
// each backward pass, and before each step (clipping as if every step needed it). The weights are
// those the rank updates. No other kernels replace it.
Passes bf16_accumulation_passes();
Passes bf16_gradient_passes(bool clips);
Passes bf16_weight_passes();

// Shares of the elements, and of the tensors or flat buffers that kernels are launched for, that
// have weight decay. Published recipes leave biases and norms out, a group of their own, for which
// unfused optimizers launch no decay and wait for no norm of it.
struct DecayingShare {
  double elements = 1, tensors = 1;
};
DecayingShare decaying_share(const std::vector<GroupSize>& groups, bool weight_decay, bool flat);

// The optimizer's own update, without compressed_allreduce: the mean over what decays and the rest.
Passes update_passes(OptimizerType type, StepKind step, Kernels kernels,
                     const DecayingShare& decaying = {});

// The three parts of compressed_allreduce (deepspeed/runtime/comm/{nccl,mpi,compressed}.py) per
// padded element, n ranks. DeepSpeed: about 100 bytes for the worker's compensation, norm, error
// and packing, 34 for unpacking and averaging n chunks, 100/n for compressing the own chunk, 38 for
// the final decode. The "compressed" backend packs with one operation where the others go through a
// bool and a byte tensor: 4 bytes less on either side. The fused kernels
// (kernels/cuda/compression.h) update the momentum as they compress it, 16.125; serve with 1/8 +
// 65/8n; decode with 4.125, which the 1-bit optimizers do without: their updates decode.
struct CompressionPasses {
  Passes worker, server, decode;
};
CompressionPasses compression_passes(OptimizerType type, Backend backend, Kernels kernels,
                                     int ranks);

}  // namespace lambcast
