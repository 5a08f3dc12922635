// Activations that wait in the host's memory from the forward to the backward pass of their block,
// as set by --offload-activations:
//
//   blocks:N       all that the model's first N blocks keep (Megatron-LM
//                  --cpu-offloading-num-layers, with Transformer Engine)
//   checkpoints    the inputs of blocks that full recomputation keeps (DeepSpeed
//                  cpu_checkpointing)
//   MODULE+...     inputs of these modules in every block, or with ":SHARE" at the end in a share
//                  of the blocks (Megatron-LM --fine-grained-activation-offloading)
//
// Bytes of the modules for n tokens of a rank, at 2 bytes per element; h hidden, q and k the widths
// of queries and keys, f that of an expert, t ranks of tensor parallelism. R rows of chosen experts
// (activation_memory.h). Sequence parallelism divides the terms in h too:
//   attn_norm, mlp_norm   2 n h             core_attn    2 n (q + 2 k) / t
//   qkv_linear            2 n h             attn_proj    2 n q / t
//   expert_fc1            2 R h             moe_act      2 R f, twice if gated
//
// B bytes of a chunk of blocks are copied during its forward pass of time T_f, and back during its
// backward pass of time T_b, over pinned memory at the rates d and u:
//
//   waits   forward max(0, B / d - T_f), backward max(0, B / u - T_b); for checkpoints B / d
//           and B / u at the rates of pageable memory, since DeepSpeed waits for each copy
//   memory  B less for each micro batch in flight, and more while copies are under way: those of
//           one block, and of the next one unless the pass waits for each copy
//
// Transformer Engine spreads the copies of N blocks over the passes of all L blocks, and
// Megatron-LM waits for copies only before it needs them, so that both hide up to a whole pass.
// Left out: small tensors that Megatron-LM keeps (--min-offloaded-tensor-size), and DeepSpeed's
// copies behind computation (since 0.19).
//
// Sources: Transformer Engine 2.10 pytorch/cpu_offload_v1.py, AsyncDoubleBufferGroupOffloadHandler;
// Megatron-LM core/pipeline_parallel/fine_grained_activation_offload.py; DeepSpeed 0.14.4
// runtime/activation_checkpointing/checkpointing.py (copy_to_device, partition_activations).
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast::parallel {

enum class OffloadModule {
  attn_norm,
  qkv_linear,
  core_attn,
  attn_proj,
  mlp_norm,
  expert_fc1,
  moe_act
};
const std::vector<std::string>& offload_module_names();

struct ActivationOffload {
  int blocks = 0;                 // number of first blocks; all that they keep is copied
  bool checkpoints = false;       // inputs of all blocks; passes wait for each copy
  std::array<bool, 7> modules{};  // by OffloadModule
  double share = 1;               // share of the modules' bytes

  bool any() const { return *this != ActivationOffload{}; }
  bool has(OffloadModule module) const { return modules[static_cast<std::size_t>(module)]; }
  bool of_experts() const { return has(OffloadModule::expert_fc1) || has(OffloadModule::moe_act); }
  bool operator==(const ActivationOffload&) const = default;
};

// Parses --offload-activations. Throws Error (usage) with `where`.
ActivationOffload parse_activation_offload(std::string_view text, const Where& where);

}  // namespace lambcast::parallel
