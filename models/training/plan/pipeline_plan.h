// The micro batches of a step under a layout: the blocks of each chunk of each pipeline stage, and
// the computation and collectives of one micro batch there. It contains only data: pass_price.h
// computes the time of a pass through a chunk, models/parallel/pipeline_time.h the schedule of all
// stages.
//
// With x = 2 s b h / c bytes of activations of a micro batch, per block (Shoeybi et al. 2019;
// Korthikanti et al. 2022, section 4.2; Megatron-LM core/tensor_parallel/layers.py):
//
//   tensor parallel           forward 2 all_reduce x, backward 2 all_reduce x
//   with sequence parallel    2 all_gather + 2 reduce_scatter x each way, and 2 more all_gather
//                             of inputs backward
//   context parallel, ring    c - 1 exchanges of keys and values during attention, twice backward;
//                             PyTorch's: keys and values gathered during the first of c blocks, and
//                             c exchanges of their gradients in fp32, the last one exposed; if
//                             traced by a compiler (Ring::traced), all of them exposed
//   context parallel, heads   all_to_all of queries, keys, values and context, both ways
//   weights sharded           all_gather of the block's weights, forward and backward; gradients
//                             reduce_scattered after its backward pass
//
// DTensor's tensor parallelism (PyTorch torch/distributed/tensor; torchtitan) differs. Gathered
// inputs are kept for the weight gradient unless they are recomputed, so none is gathered again.
// Tokens are the second dimension, so gathered and scattered tensors are copied into order, read
// and written once. Input gradients of several products are added up before the scatter, which
// therefore overlaps none of them (torch/_inductor/fx_passes/micro_pipeline_tp.py fuses a product
// and a collective next to each other).
//
// Low-rank adapters of a pair of products gather three tensors r wide each way, and exchange tokens
// for columns of the second adapter's output (NeMo parallel_adapters.py, a2a_experimental). Frozen
// weights do not need their inputs gathered again.
//
// A decoder's attention to its encoder has the collectives of a pair of products on the decoder's
// tokens. Its keys and values have, on the encoder's tokens, the collectives before a first
// product.
//
// If full recomputation keeps a block's input in t parts, they are gathered before it: all_gather x
// for each block and backward pass (DeepSpeed runtime/activation_checkpointing/checkpointing.py,
// gather_partitioned_activations; Megatron-LM --distribute-saved-activations).
//
// Outside the blocks, the embedding's rows and the head's input gradient are summed over t.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "models/device/block_time.h"
#include "models/parallel/pipeline_schedule.h"
#include "models/parallel/pipeline_time.h"
#include "models/parallel/stage_split.h"
#include "models/training/plan/expert_plan.h"
#include "models/training/plan/framework.h"
#include "models/training/plan/work.h"

namespace lambcast {

// Collectives over t of the activations that enter and leave a pair of products.
struct ActivationCalls {
  std::optional<Call> sum;              // without sequence parallelism
  std::optional<Call> gather, scatter;  // with sequence parallelism
  std::optional<Call> checkpoint;       // for a block's input that was kept in parts
  Bytes copied;  // read and written to reorder a gathered or scattered tensor
};

// Consecutive blocks of the same shape, except those with experts.
struct BlocksAlike {
  int first_layer = 0, layers = 0;
  BlockWork block;
  std::optional<ExpertPlan> experts;
  ActivationCalls activations;
};

struct PipelinePlan {
  parallel::Pipeline pipeline;
  parallel::Transfers transfers = parallel::Transfers::exposed;
  // Whether all stages end a step together. In zero-bubble schedules stages step separately, so a
  // step lasts as long as the longest stage.
  bool synchronised = true;
  // Share of a chunk's last backward pass after which the first bucket of its gradients is
  // complete.
  double first_bucket = 1;
  std::vector<parallel::ChunkContent> chunks;  // by position
  std::vector<Place> places;                   // place of the first rank of each stage
  BlockWork block;                             // work of blocks without experts
  std::optional<ExpertPlan> experts;           // blocks with experts
  // Stages of an image pyramid, or an encoder and its decoder; the last one has `block`. Empty if
  // all blocks have the same shape.
  std::vector<BlocksAlike> stacks;

  // Activations that a chunk copies to the host during a forward pass, and back during a backward
  // pass, by position; empty if there are none (models/parallel/activation_offload.h).
  std::vector<Bytes> copied_activations;

  TensorOverlap tensor_overlap = TensorOverlap::none;
  ActivationCalls activations;                             // for `block`
  std::optional<Call> adapters_gather, adapters_exchange;  // over t
  bool dtensor = false;                // whether tensor parallelism is PyTorch's DTensor
  std::optional<Call> loss_sum;        // one of the three collectives of the loss, over t
  std::optional<Call> keys_values;     // over c: one exchange of a ring, or one gather of all
  std::optional<Call> keys_gradients;  // one exchange of a ring, if keys and values are gathered
  int context_rounds = 0;              // c - 1 of a ring; 0: none
  // Exchanges over c: one of queries or of attention's output, and one of keys or of values.
  std::optional<Call> queries_exchange, keys_exchange;
  // Calls by position, except for the last one. Each sends an activation to the next position and
  // its gradient back, within the node, to another node, or (V-shaped schedules) on the same GPUs.
  std::vector<Call> sends;
  std::optional<Call> sends_gather;  // over t, if each rank sent a part

  // Calls for sharded weights. Weights of one of `weight_pieces` pieces of a block are gathered for
  // each pass. Gradients of `reduced_pieces` pieces are reduced call by call: scattered over the
  // sharing ranks (or exchanged in int4), then summed over ranks with the same share.
  std::optional<Call> weights_gather, weights_gather_again;
  int kept_blocks =
      0;  // number of last blocks whose weights are kept from the forward to the backward pass
  std::vector<Call> gradients_reduce;
  // Bytes read and written if a piece is quantized.
  Bytes weights_quantized, gradients_quantized;
  std::optional<Call> outer_weights_gather;  // gather of embedding and head
  std::vector<Call> outer_gradients_reduce;
  Duration shard_handling;  // host time for each call on a shard
  // Calls for the experts of a block, over the ranks that hold the same ones.
  std::optional<Call> expert_weights_gather, expert_gradients_scatter;
  int weight_pieces = 1, reduced_pieces = 1;
  bool hides_sharding =
      true;  // whether computation overlaps these calls; else the pass waits for them
};

}  // namespace lambcast
