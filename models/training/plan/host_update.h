// ZeRO-Offload (Ren et al. 2021, arXiv:2101.06840): the states of Adam are in the host's memory,
// and are updated by its processors, which all ranks of a node share. After the last micro batch,
// the following happen one after another:
//
//   gradients to the host   gradients of each micro batch in 16 bits, 2 bytes per element of the
//                           rank's share; with them, the sum of earlier micro batches is copied to
//                           the GPU and back. At stages 1 and 2 the fp32 sum is copied at the end,
//                           and nothing else if there is one micro batch
//   update                  bytes of host memory per element over node.host_memory: weight, moments
//                           and gradient read 16; weight and moments written 12; the gradient
//                           scaled in place 8; the new weight to 16 bits 6; at stage 3 the
//                           gradient to fp32 6
//   weights to the GPU      in 16 bits
//
// Not modelled: copies that overlap the backward pass.
//
// Source: DeepSpeed 0.14.4, csrc/adam/cpu_adam_impl.cpp, runtime/zero/stage_1_and_2.py
// (async_accumulate_grad_in_cpu_via_gpu, async_inplace_copy_grad_to_fp32_buffer_from_gpu),
// stage3.py (partition_grads, unscale_and_clip_grads,
// _reassign_or_swap_out_partitioned_parameters).
#pragma once

#include <string>
#include <vector>

#include "models/training/plan/step_part.h"

namespace lambcast {

// Place of the optimizer's states and of their update; the flag's values are "none" and "cpu".
enum class OptimizerOn { gpu, host };
const std::vector<std::string>& offload_names();

// Returns the update of `elements` per rank on the host, with `ranks_at_once` ranks on a node.
std::vector<StepPart> host_update(double elements, bool weights_shared, std::int64_t micro_batches,
                                  int ranks_at_once);

}  // namespace lambcast
