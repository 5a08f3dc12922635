// What the fullest rank of a layout holds: states and activations as models/parallel counts them,
// and beside them what only the framework and its libraries know.
//
//   weights, gradients, optimizer
//                 state_memory.h, by framework: FSDP2 shards fp32 weights that are the optimizer's
//                 own; DeepSpeed's bf16 keeps 16-bit gradients and fp32 sums; Megatron's optimizer
//                 copies 16-bit gradients to fp32. Frozen weights are held as the products read
//                 them, in 8 or 4 bits too (Transformer Engine, fp8_model_init)
//   activations   kept from forward to backward passes (activation_memory.h)
//   loss          a rank's tokens x V / t x 8 unless it is compiled: in fp32, beside the softmax's
//                 4 that count among activations, its gradient twice in PyTorch's backward pass; 12
//                 where PyTorch divides the loss over tensor parallelism (loss.py). It is gone when
//                 the blocks' backward passes begin, so if those need more,
//   recomputed    (activation_memory.h) and block_gradients, of a block's inner tensors (f / t,
//                 three if gated), its input and its residual
//   buffers       sharded weights while they are whole and their gradients until they are reduced;
//                 DeepSpeed's two buckets where it shares states (else a bucket is flattened after
//                 the backward pass, in the place of activations); under sequence parallelism a
//                 gathered input and an output before it is scattered, 2 x 2 s b h; as much between
//                 stages of a pipeline
//   unused        what PyTorch's allocator holds and nobody uses: a share of what comes and goes;
//                 where segments expand, so that this is small, also the place of 16-bit logits,
//                 2 V / t a token, which is too small for what comes after them
//   runtime       CUDA context with PyTorch's kernels, and buffers of each communicator
//
// Whole at a time: FSDP two blocks (the one that computes and the next), embedding and head;
// DeepSpeed's stage 3 max_live_parameters, 1e9 elements. nvidia-smi shows all parts;
// torch.cuda.max_memory_reserved not the runtime, max_memory_allocated not what is unused either.
//
// Sources: PyTorch FSDP2, torchtitan train.py; DeepSpeed runtime/zero/config.py; Megatron-LM
// core/tensor_parallel/layers.py (GlobalMemoryBuffer). Runtime: fitted, see the constants.
#pragma once

#include "models/training/memory/memory.h"

namespace lambcast {

// Of a training under a layout: a rank of each stage of the pipeline, and of the fullest.
std::vector<MemoryForecast> forecast_stage_memory(const TrainingPlan& training);
MemoryForecast forecast_layout_memory(const TrainingPlan& training);

// Where no layout is asked for: what passes hold beside states, as of one that divides nothing, and
// the runtime. A model without known blocks keeps what its description says.
std::vector<std::pair<std::string, Bytes>> undivided_passes(const TrainingPlan& training);

}  // namespace lambcast
