// Defaults of a training framework under a layout: rank order, collectives, and the overlap of
// communication with computation. A framework is a row of values, each of which can be changed.
//
//               order           gradients on  reduction   weights after  tensor    pipeline
//                               the wire      overlaps    the step       parallel  sends
//   deepspeed   tp-cp-ep-dp-pp  as weights    stage 2, 3  exposed        none      exposed
//   megatron    tp-cp-ep-dp-pp  fp32          yes         next forward   backward  overlapped if
//                                                                                  interleaved
//   torchtitan  tp-cp-ep-dp-pp  fp32          yes         (FSDP)         none      overlapped
//   colossalai  tp-cp-ep-pp-dp  as weights    yes         exposed        none      exposed
//
// nemo has Megatron's values. paddle is PaddleNLP, whose hybrid parallelism (fleet) follows
// Megatron-LM's. Its options that hide communication are off by default: 16-bit gradients are
// reduced after the passes (at stage 2 after each piece of each backward pass), and collectives of
// tensor parallelism and sends of pipelines, in parts, are exposed.
//
// jax has torchtitan's costs: MaxText keeps weights in fp32, sharded and cast for use (GSPMD), has
// separate products for queries, keys, values and both halves of a gated feed-forward, and XLA
// fuses the operations between products. nvidia is the recipes of NVIDIA DeepLearningExamples,
// which have DeepSpeed's steps without any division of the model. tensorflow (Horovod), bagua and
// other are data parallel as pytorch is; other can also divide a model, as Megatron does. With
// several micro batches tensorflow reduces their sums, in Horovod's fusion buffers of 64 MiB, after
// the last backward pass, and it updates weights operation by operation.
//
// pytorch is its DistributedDataParallel around plain modules, with torch.autocast if precision is
// 16 bits. Gradients are in fp32, in buckets of 25 MB that overlap the backward pass. It supports
// only data and expert parallelism.
//
// Sources: Megatron-LM core/distributed/distributed_data_parallel.py (buckets of max(40e6, 1e6 d)
// elements, fp32 main_grad), core/tensor_parallel/layers.py (gradients of inputs reduced during
// weight gradients), core/pipeline_parallel/schedules.py (overlap_p2p_comm of interleaved
// schedules); DeepSpeed runtime/pipe/{engine,topology}.py, runtime/zero/config.py; torchtitan
// distributed/parallel_dims.py, PyTorch FSDP2 fully_shard; ColossalAI
// booster/plugin/hybrid_parallel_plugin.py (dp_outside); PaddleNLP trainer/training_args.py
// (amp_master_grad, tensor_parallel_config, sharding_parallel_config, pipeline_parallel_config);
// MaxText configs/base.yml at 000e9355; NVIDIA DeepLearningExamples
// TensorFlow/LanguageModeling/BERT/optimization.py (allreduce_post_accumulation), aws-samples
// deep-learning-models models/nlp/albert/run_pretraining.py (allreduce), Horovod's
// HOROVOD_FUSION_THRESHOLD.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/device/block_time.h"
#include "models/optimizer/passes.h"
#include "models/parallel/parallel_layout.h"
#include "models/parallel/stage_split.h"
#include "models/parallel/state_memory.h"

namespace lambcast {

// Which tensor-parallel collectives overlap matrix products.
//   none       none
//   backward   sums of input gradients overlap the weight gradient of the same layer; with sequence
//              parallelism, re-gathered inputs overlap the input gradient
//   all        also forward collectives overlap their products, chunk by chunk (Transformer
//              Engine's user buffers, PyTorch's asynchronous tensor parallelism). One of t
//              scattered chunks is exposed, and none of t gathered ones
//   chunks     as all, but sums of input gradients overlap their own product chunk by chunk
//              (tp_comm_overlap_rs_dgrad), as they do if frozen weights
//              leave no weight gradient to overlap
enum class TensorOverlap { none, backward, all, chunks };
const std::vector<std::string>& tensor_overlap_names();

// Tensors that context parallelism exchanges: keys and values in a ring, or heads for tokens before
// and after attention (DeepSpeed-Ulysses, arXiv 2309.14509).
enum class ContextExchange { ring, heads };
const std::vector<std::string>& context_exchange_names();

enum class FrameworkName {
  deepspeed,
  megatron,
  torchtitan,
  colossalai,
  pytorch,
  nvidia,
  nemo,
  paddle,
  tensorflow,
  jax,
  bagua,
  other
};
const std::vector<std::string>& framework_names();
std::string_view name_of(FrameworkName name);

// Whether an undivided model runs as under DeepSpeed; this includes NVIDIA's recipes.
constexpr bool steps_as_deepspeed(FrameworkName name) {
  return name == FrameworkName::deepspeed || name == FrameworkName::nvidia;
}

struct Framework {
  FrameworkName name = FrameworkName::deepspeed;
  parallel::AxisOrder order = parallel::default_order;
  parallel::SplitMethod split = parallel::SplitMethod::even;
  bool fp32_gradients = false;      // on the wire and in the buffer; else the weights' format
  bool keeps_buffers = false;       // gradients and quantized weights have buffers for all steps
  bool overlaps_gradients = false;  // reduced during the last micro batch's backward pass
  bool reduces_sums = false;        // after the passes, sums of several micro batches are reduced
  bool in_buckets = false;          // after the passes, reduces buckets; else one buffer
  // Compressed gradients are exchanged in hooks of the backward pass, in the form of
  // in_hooks(Exchange): PyTorch's DDP has them for libraries such as Bagua.
  bool exchanges_in_hooks = false;
  bool overlaps_weights =
      false;  // gathers weights during the next forward pass after a sharded update
  TensorOverlap tensor_overlap = TensorOverlap::none;
  bool overlaps_sends = false;  // in interleaved and zero-bubble pipelines
  bool sends_parts = false;     // without sequence parallelism: 1/t per rank, gathered in the node
  // Whether weight gathers and gradient scatters overlap computation. False for DeepSpeed, although
  // it is designed to overlap them: on 128 to 1,024 A100s its stage 3 adds as much time for micro
  // batches of 16 sequences as for one sequence (DeepSpeed and Azure, blog of 2022-07-26).
  bool hides_sharding = true;
  // Elements gathered in one call, if a block has more: then it is gathered matrix by matrix
  // (DeepSpeed stage3_prefetch_bucket_size; a larger matrix is one call). Zero: a block at once.
  double prefetch_bucket = 0;
  // Largest number of elements of a weight that stays whole on every rank; such weights are
  // gathered once after an update (DeepSpeed stage3_param_persistence_threshold).
  double persistent_tensor = 0;
  // Whether the sharded weights are the optimizer's own in fp32, cast for every gather (FSDP2).
  // Otherwise there is a 16-bit copy in addition to the optimizer's.
  bool shards_fp32 = false;
  // Host time per shard and call for assembling gathered weights or dividing gradients, during
  // which the GPU waits. DeepSpeed handles each rank's part in Python
  // (runtime/zero/partition_parameters.py, AllGatherCoalescedHandle.wait;
  // runtime/comm/coalesced_collectives.py, reduce_scatter_coalesced). Fitted to two rows of
  // deepspeed_azure_zero3.
  double shard_handling_us = 0;
  // Memory that the allocator holds unused, as a share of temporary memory: 3 % with expandable
  // segments, which torchtitan sets, else 10 % (assumed).
  double unused_memory = 0.1;
  // Elements of gathered weights that are in memory at once (DeepSpeed stage3_max_live_parameters).
  // If 0: the elements of two blocks and of the vocabulary.
  double live_elements = 0;
  // Weights are kept after the forward pass if fewer elements are used before their next use
  // (DeepSpeed stage3_max_reuse_distance). Zero: none is kept.
  double reuse_elements = 0;
  // Two flat gradient buckets are held in addition to the gradient sums.
  bool flat_buckets = false;
  // Whether fp32 sums are held in addition to a micro batch's 16-bit gradients, and whether the
  // update makes an fp32 copy of 16-bit gradients.
  bool sums_beside = false, copies_gradients = false;
  double least_bucket = 0;  // elements of a bucket: max(least_bucket, bucket_per_rank d)
  double bucket_per_rank = 0;
  Fusion fusion = Fusion::fused;
  bool autocast = false;  // torch.autocast around the passes (models/device/image_time.h)
  Kernels kernels = Kernels::nvidia;  // kernels of the update; DeepSpeed has others
  bool eager_loss = false;            // whether a compiled model has an uncompiled loss
  // Whether tensor parallelism works as in PyTorch's DTensor (pipeline_plan.h), instead of as in
  // Megatron-LM.
  bool dtensor = false;
  // Whether queries, keys, values and both halves of a gated feed-forward are separate products.
  bool separate_products = false;
  Ring ring = Ring::fused;  // implementation of ring attention (block_time.h)
  ContextExchange context_exchange = ContextExchange::ring;
  // Limits of the framework: whether it has tensor and pipeline parallelism, and the most that
  // ranks can share.
  bool divides_model = true;
  parallel::Sharding most_sharing = parallel::Sharding::weights;

  bool operator==(const Framework&) const = default;
};

const Framework& framework_of(FrameworkName name);

}  // namespace lambcast
