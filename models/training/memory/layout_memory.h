// Peak memory of the rank of a layout that needs most: states and activations as counted in
// models/parallel, plus the memory of the framework and its libraries.
//
//   weights, gradients, optimizer
//                 state_memory.h, by framework: FSDP2 shards the optimizer's own fp32 weights;
//                 DeepSpeed's bf16 keeps 16-bit gradients and fp32 sums; Megatron's optimizer
//                 copies 16-bit gradients to fp32. Frozen weights have the format of their
//                 products, also 8 or 4 bits (Transformer Engine, fp8_model_init)
//   activations   kept from forward to backward passes (activation_memory.h)
//   loss          8 bytes for each of a rank's tokens x V / t logits unless the loss is compiled:
//                 PyTorch's backward pass holds the gradient twice in fp32; 12 bytes if PyTorch
//                 divides the loss over tensor parallelism (loss.py). 4 bytes of the softmax count
//                 among the activations. The loss is freed before the blocks' backward passes
//                 begin. If these need more memory, they count instead of the loss, as the next
//                 two parts:
//   recomputed    (activation_memory.h) and block_gradients, of a block's inner tensors (f / t,
//                 three if gated), its input and its residual
//   buffers       gathered weights while in use, and their gradients until they are reduced;
//                 DeepSpeed's two buckets if it shards states (else a bucket is flattened after the
//                 backward pass, in the memory of freed activations); under sequence parallelism a
//                 gathered input and an output before it is scattered, 2 x 2 s b h; the same amount
//                 between stages of a pipeline
//   unused        memory that PyTorch's allocator holds unused: a share of all that is allocated
//                 and freed; with expandable segments, which make it small, also the memory of
//                 16-bit logits, 2 V / t a token, which is too small for later allocations
//   runtime       CUDA context with PyTorch's kernels, and buffers of each communicator
//
// Weights gathered at a time: with FSDP two blocks (the one that computes and the next), embedding
// and head; with DeepSpeed's stage 3 max_live_parameters, 1e9 elements. nvidia-smi shows all parts;
// torch.cuda.max_memory_reserved does not show the runtime, and max_memory_allocated neither the
// runtime nor unused memory.
//
// Sources: PyTorch FSDP2, torchtitan train.py; DeepSpeed runtime/zero/config.py; Megatron-LM
// core/tensor_parallel/layers.py (GlobalMemoryBuffer). Runtime: fitted, see the constants.
#pragma once

#include "models/training/memory/memory.h"

namespace lambcast {

// Forecasts the memory of one rank per pipeline stage of a layout, and the memory of the rank that
// needs most.
std::vector<MemoryForecast> forecast_stage_memory(const TrainingPlan& training);
MemoryForecast forecast_layout_memory(const TrainingPlan& training);

// Returns the parts of memory other than states for a run without a layout: the memory of passes,
// as under a layout that divides nothing, and the runtime. A model without known blocks uses the
// value of its description.
std::vector<std::pair<std::string, Bytes>> undivided_passes(const TrainingPlan& training);

}  // namespace lambcast
