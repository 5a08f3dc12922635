// Costs of an optimizer step outside the optimizer's own update (models/optimizer): the precision
// wrapper (fused_optimizer.py, unfused_optimizer.py) with its overflow check, gradient norm,
// unscaling and copies between fp16 and fp32, and the passes of compressed_allreduce. DeepSpeed
// implements these as separate PyTorch operations. The passes of DeepSpeed's optimizers were
// counted in real steps (kernels/deepspeed_traffic.h), the others in the source of DeepSpeed
// 0.15.4.
#pragma once

#include "models/recipe/wrapper.h"
#include "models/shape/shape.h"
#include "topologies/cluster.h"

namespace lambcast {

// Returns the kernels that a software stack runs for an optimizer.
Kernels stack_kernels(const StackSpec& stack, OptimizerType type);

// Returns the passes of the wrapper around the optimizer, per element that the rank updates and per
// tensor of the model.
Passes wrapper_passes(Wrapper wrapper, OptimizerType type, Kernels kernels, const Engine& engine);

// Returns the passes around PyTorch's own optimizers under autocast: torch.cuda.amp.GradScaler
// unscales (8) and checks for overflow, clip_grad_norm_ reads (4) and scales (8), tensor by tensor
// before release 2.0.
Passes autocast_passes(Kernels kernels);

// Whether the wrapper finds overflow in norms, all-reduces the flag over all ranks in every step,
// and then calls a barrier. Plain LAMB's wrapper does; before release 0.3.1 all wrappers did.
bool asks_all_for_overflow(Wrapper wrapper, OptimizerType type, Kernels kernels,
                           const Engine& engine);

// BF16_Optimizer handles the gradients of the whole model, independent of the rank's share: after
// each backward pass, and before each step (clipping is counted in every step). Only the weights
// that the rank updates are copied. No other kernels replace these.
Passes bf16_accumulation_passes();
Passes bf16_gradient_passes(bool clips);
Passes bf16_weight_passes();

// Shares of the elements that have weight decay, and of the tensors or flat buffers that kernels
// are launched for. Published recipes exclude biases and norms as a separate group, for which
// unfused optimizers launch no decay and wait for no norm.
struct DecayingShare {
  double elements = 1, tensors = 1;
};
DecayingShare decaying_share(const std::vector<GroupSize>& groups, bool weight_decay, bool flat);

// Returns the passes of the optimizer's own update, without compressed_allreduce: the mean over
// elements with and without weight decay.
Passes update_passes(OptimizerType type, StepKind step, Kernels kernels,
                     const DecayingShare& decaying = {});

// The three parts of compressed_allreduce (deepspeed/runtime/comm/{nccl,mpi,compressed}.py), per
// padded element, for n ranks. DeepSpeed: about 100 bytes for the worker's compensation, norm,
// error and packing, 34 for unpacking and averaging n chunks, 100/n for compressing the own chunk,
// 38 for the final decoding. The "compressed" backend packs with one operation, while others use a
// bool and a byte tensor: 4 bytes less for the worker and for the decoding. The fused kernels
// (kernels/cuda/compression.h) update the momentum while compressing, 16.125; the server part takes
// 1/8 + 65/8n; decoding takes 4.125, which the updates of the 1-bit optimizers include.
struct CompressionPasses {
  Passes worker, server, decode;
};
CompressionPasses compression_passes(OptimizerType type, Backend backend, Kernels kernels,
                                     int ranks);

}  // namespace lambcast
