// Division of one model over the ranks of a job, in framework-neutral terms. DeepSpeed files,
// Megatron's arguments and flags are converted to this if they set more than data parallelism. No
// value here is a time.
//
// d ranks hold one copy of the model each, divided by t (tensor), c (context) and p (pipeline):
// gpus = t c d p. Ranks that would hold the same states share them according to `sharding`:
//
//   none        every rank has its own states (ZeRO stage 0)
//   optimizer   optimizer states (ZeRO 1, Megatron's distributed optimizer): gradients are
//               reduce-scattered, weights gathered once a step
//   gradients   gradients too (ZeRO 2, FSDP SHARD_GRAD_OP): scattered after every micro batch
//   weights     weights too (ZeRO 3, FSDP FULL_SHARD): each block's are gathered before its
//               forward and its backward pass of every micro batch
//
// `shard_ranks` ranks share one copy; gradients are then all-reduced between copies (MiCS,
// HYBRID_SHARD). ZeRO++ sends fewer bytes of sharded weights (Wang et al. 2023):
//
//   hpZ         a second copy in 16 bits, sharded over `secondary_ranks` of a node, from which the
//               backward pass gathers
//   qwZ         weights gathered in int8
//   qgZ         gradients exchanged in int4, in the node and then between nodes
//
// Sources: Rajbhandari et al. 2019 (ZeRO), section 7; Narayanan et al. 2021; Korthikanti et al.
// 2022; FSDP notes of PyTorch; arXiv 2306.10209 and DeepSpeed
// runtime/comm/coalesced_collectives.py.
#pragma once

#include <algorithm>

#include "models/device/attention_kernel.h"
#include "models/device/block_time.h"
#include "models/device/gpu_rates.h"
#include "models/parallel/activation_memory.h"
#include "models/parallel/layout_rules.h"
#include "models/parallel/parallel_layout.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/parallel/stage_split.h"
#include "models/parallel/state_memory.h"
#include "models/training/plan/exchange.h"
#include "models/training/plan/expert_plan.h"
#include "models/training/plan/framework.h"
#include "models/training/plan/host_update.h"

namespace lambcast {

struct Parallelism {
  parallel::ParallelLayout layout;
  parallel::PipelineSchedule schedule = parallel::PipelineSchedule::one_f_one_b;
  Framework framework;
  parallel::Sharding sharding = parallel::Sharding::none;
  int shard_ranks = 1;                                          // 1 for Sharding::none
  int secondary_ranks = 1;                                      // hpZ; 1: no second copy
  bool quantized_weights = false, quantized_gradients = false;  // qwZ, qgZ
  Exchange quantized_by{Exchange::Kind::qgz};                   // codec of quantized_gradients
  // With Sharding::optimizer: every rank sums all gradients, although it updates only its share
  // (Apex's distributed LAMB with full_ar). This is one collective over all ranks instead of one in
  // the shards and one between them.
  bool full_all_reduce = false;
  // Whether factored optimizers sum their column means over the ranks that share states
  // (optimizer_state.h).
  bool sums_columns = false;
  OptimizerOn optimizer_on = OptimizerOn::gpu;  // shared gradients are in the same memory
  bool sequence_parallel = false;
  parallel::Recompute recompute = parallel::Recompute::none;  // activations that are not kept
  Repeated repeated = Repeated::nothing;                      // kernels that run again for them
  // Whether the inputs of blocks kept by full recomputation are divided over tp, and gathered
  // before it.
  bool partitions_activations = false;
  parallel::ActivationOffload offload = {};
  MatrixFormat format = MatrixFormat::half;  // format of the blocks' products
  AttentionKernel attention = AttentionKernel::flash2;
  bool fp8_attention = false;
  bool fp8_gates = false;  // whether inputs of gated activations are kept in fp8
  // Whether matrices of blocks that are multiplied in fp8 are also gathered in fp8: by torchao
  // (enable_fsdp_float8_all_gather), or with Transformer Engine's fp8 weights (--fp8-param-gather).
  bool fp8_gather = false;
  bool captured = false;  // whether CUDA graphs replay the kernels of a block
  parallel::StateTypes states;
  ExpertUse experts;
  double weight_bytes = 2;  // per element in computation and gathers

  // Returns the number of ranks with the same weights, over which gradients are summed.
  int replicas() const { return layout.dp * layout.cp; }
  // Returns the number of ranks that share states of the same experts: all with these experts, or
  // those in a shard group.
  int expert_shard_ranks() const {
    const int held = layout.expert_replicas();
    return sharding == parallel::Sharding::none ? 1 : std::max(1, held * shard_ranks / replicas());
  }
  int model_ranks() const { return layout.tp * layout.cp * layout.pp; }
  parallel::Pipeline pipeline(std::int64_t micro_batches) const {
    return {schedule, layout.pp, layout.virtual_stages, static_cast<int>(micro_batches)};
  }
  // Returns the inputs of the layout rules for a step of `micro_batches` micro batches.
  parallel::LayoutUse use(int gpus, std::int64_t micro_batches, std::int64_t seq_len) const {
    return {gpus,
            static_cast<int>(micro_batches),
            seq_len,
            sequence_parallel,
            schedule,
            framework.split,
            framework.context_exchange == ContextExchange::heads,
            framework.name == FrameworkName::colossalai,
            framework.name == FrameworkName::megatron || framework.name == FrameworkName::nemo};
  }
  double gradient_bytes() const { return framework.fp32_gradients ? 4 : 2; }
  // Returns the bytes per element of activations, in memory and on the wire.
  double activation_bytes() const { return format == MatrixFormat::single ? 4 : 2; }

  bool operator==(const Parallelism&) const = default;
};

}  // namespace lambcast
