// What an optimizer step does to the GPU's memory and to the host that launches it.
//
// All these steps are memory bound elementwise work, so their time is
//
//   max( bytes_per_element * N / copy_bandwidth,  launches * launch_overhead ) + syncs *
//   sync_overhead
//
// with N elements in T tensors. DeepSpeed writes the 1-bit optimizers as separate PyTorch
// operations, one kernel each: `x.mul_(b)` reads and writes 4 bytes, `x.add_(y)` reads 8 and writes
// 4, and so on; the counts below add these up in the order of the source
// (deepspeed/runtime/fp16/onebit/{adam,lamb,zoadam}.py, 0.15.4), on fp32 state. The plain
// optimizers run fused kernels. The precision wrapper (fp16_optimizer.py, unfused_optimizer.py)
// adds the overflow check, gradient norm, unscaling and the copies between fp16 and fp32.
#pragma once

#include <string_view>

#include "models/deepspeed/optimizer.h"
#include "topologies/cluster.h"

namespace lambcast {

enum class StepKind { uniform, warmup, compression, silent };

std::string_view name_of(StepKind kind);

// Whose kernels run: DeepSpeed's (unfused for the 1-bit optimizers, fused for the plain ones), the
// same with plain Adam unfused too, NVIDIA's Apex, or those of kernels/.
enum class Kernels { deepspeed, unfused_adam, nvidia, fused };

// What a software stack runs for an optimizer.
Kernels stack_kernels(const StackSpec& stack, deepspeed::OptimizerType type);

struct Passes {
  double bytes_per_element = 0;
  double launches = 0;
  double launches_per_tensor = 0;
  double syncs = 0;
  double syncs_per_tensor = 0;
  // The name under which `lambcast profile` measures it, if it does: its time then replaces all
  // that.
  std::string_view kernel = {};
};

// The wrapper around the optimizer, per element that the rank updates.
Passes wrapper_passes(deepspeed::OptimizerType type, Kernels kernels);

// BF16_Optimizer instead handles the gradients of the whole model, whatever the rank's share: after
// each backward pass, and before each step (clipping as if every step needed it). The weights are
// those the rank updates. No other kernels take its place.
Passes bf16_accumulation_passes();
Passes bf16_gradient_passes(bool clips);
Passes bf16_weight_passes();

// The optimizer's own update, without compressed_allreduce.
Passes update_passes(deepspeed::OptimizerType type, StepKind step, Kernels kernels);

// The three parts of compressed_allreduce (deepspeed/runtime/comm/{nccl,mpi,compressed}.py) per
// padded element, n ranks. DeepSpeed: about 100 bytes for the worker's compensation, norm, error
// and packing, 34 for unpacking and averaging n chunks, 100/n for compressing the own chunk, 38 for
// the final decode. The "compressed" backend packs with one operation where the others go through a
// bool and a byte tensor: 4 bytes less on either side. The fused kernels
// (kernels/cuda/compression.h) update the momentum as they compress it, 16.125; serve with 1/8 +
// 65/8n; decode with 4.125, which the LAMB step does itself.
struct CompressionPasses {
  Passes worker, server, decode;
};
CompressionPasses compression_passes(deepspeed::OptimizerType type, deepspeed::CommBackend backend,
                                     Kernels kernels, int ranks);

}  // namespace lambcast
