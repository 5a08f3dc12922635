// Memory that the passes of a rank need at the peak, and that of the framework and its libraries.
//
//   activations   kept from forward to backward passes (models/parallel/activation_memory.h); for a
//                 model without known blocks the value of its description
//   loss          8 bytes for each of a rank's tokens x V / t logits unless the loss is compiled:
//                 PyTorch's backward pass holds the gradient twice in fp32; 12 bytes if PyTorch
//                 divides the loss over tensor parallelism (loss.py). 4 bytes of the softmax count
//                 among the activations. The loss is freed before the blocks' backward passes
//                 begin. If these need more memory, they count instead of the loss, as the next
//                 two parts:
//   recomputed    (activation_memory.h) and block_gradients, of a block's inner tensors (f / t,
//                 three if gated), its input and its residual
//   buffers       gathered weights while in use, and their gradients until they are reduced; under
//                 sequence parallelism a gathered input and an output before it is scattered,
//                 2 x 2 s b h; the same amount between stages of a pipeline
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

#include <string_view>
#include <utility>
#include <vector>

#include "models/training/plan/layout_contents.h"

namespace lambcast {

struct PassMemory {
  std::vector<std::pair<std::string_view, Bytes>> parts;
  Bytes host;  // activations of one rank in the host's memory (activation_offload.h)
};

// Returns the parts of each stage's ranks. `training` has a layout, whose `contents` and parameters
// `held` by stage are given.
std::vector<PassMemory> pass_memory(const TrainingPlan& training, const LayoutContents& contents,
                                    const std::vector<parallel::RankParameters>& held);

}  // namespace lambcast
