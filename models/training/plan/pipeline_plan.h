// The micro batches of a step under a layout: the blocks of each chunk of each pipeline stage, and
// the computation and collectives of one micro batch there. Pure data: pass_price.h finds the time
// of a pass through a chunk, models/parallel/pipeline_time.h the schedule of all stages.
//
// With x = 2 s b h / c bytes of activations of a micro batch, per block (Shoeybi et al. 2019;
// Korthikanti et al. 2022, section 4.2; Megatron-LM core/tensor_parallel/layers.py):
//
//   tensor parallel           forward 2 all_reduce x, backward 2 all_reduce x
//   and sequence parallel     2 all_gather + 2 reduce_scatter x each way, and backward 2 all_gather
//                             of inputs more
//   context parallel, ring    c - 1 exchanges of keys and values during attention, twice backward;
//                             PyTorch's: keys and values gathered during the first of c blocks, and
//                             c exchanges of their gradients in fp32, the last one exposed; as a
//                             compiler traces it (Ring::traced), all of them exposed
//   context parallel, heads   all_to_all of queries, keys, values and context, both ways
//   weights sharded           all_gather of the block's weights, forward and backward; gradients
//                             reduce_scattered after its backward pass
//
// DTensor's tensor parallelism (PyTorch torch/distributed/tensor; torchtitan) differs. Gathered
// inputs stay for the weight gradient unless they are recomputed, so none is gathered again. Tokens
// are the second dimension, so gathered and scattered tensors are copied into order, read and
// written once. Input gradients of several products are added up before the scatter, which
// therefore hides behind none of them (torch/_inductor/fx_passes/micro_pipeline_tp.py fuses a
// product and a collective next to each other).
//
// Low-rank adapters of a pair of products gather three tensors r wide each way, and exchange tokens
// for columns of the second adapter's output (NeMo parallel_adapters.py, a2a_experimental). Frozen
// weights need no inputs gathered again.
//
// A decoder's attention to its encoder has the collectives of a pair of products on the decoder's
// tokens; its keys and values, on the encoder's, those before a first product.
//
// Full recomputation that keeps a block's input in t parts gathers them before it: all_gather x a
// block and backward pass (DeepSpeed runtime/activation_checkpointing/checkpointing.py,
// gather_partitioned_activations; Megatron-LM --distribute-saved-activations).
//
// and outside the blocks: the embedding's rows summed over t, the head's input gradient summed over
// t.
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

// Collectives of the activations that enter and leave a pair of products, over t.
struct ActivationCalls {
  std::optional<Call> sum;              // without sequence parallelism
  std::optional<Call> gather, scatter;  // with it
  std::optional<Call> checkpoint;       // of a block's input that was kept in parts
  Bytes copied;                         // read and written to order what is gathered or scattered
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
  // Zero-bubble schedules: stages step on their own, so a step lasts as long as the longest stage.
  bool synchronised = true;
  // Share of a chunk's last backward pass after which the first bucket of its gradients is whole.
  double first_bucket = 1;
  std::vector<parallel::ChunkContent> chunks;  // by position
  std::vector<Place> places;                   // of each stage's first rank
  BlockWork block;                             // of blocks without experts
  std::optional<ExpertPlan> experts;           // of blocks with experts
  // Stages of a pyramid of images, or an encoder and its decoder; the last one has `block`. Empty:
  // all blocks are alike.
  std::vector<BlocksAlike> stacks;

  TensorOverlap tensor_overlap = TensorOverlap::none;
  ActivationCalls activations;                             // of `block`
  std::optional<Call> adapters_gather, adapters_exchange;  // over t
  bool dtensor = false;                // tensor parallelism as PyTorch's DTensor writes it
  std::optional<Call> loss_sum;        // one of the three of the loss, over t
  std::optional<Call> keys_values;     // over c: one exchange of a ring, or all of them gathered
  std::optional<Call> keys_gradients;  // one exchange of a ring, where they are gathered
  int context_rounds = 0;              // c - 1 of a ring; 0: none
  // Exchanges over c: of queries or the output of attention, of keys or of values.
  std::optional<Call> queries_exchange, keys_exchange;
  // Indexed by position, without the last: an activation to the next and its gradient back, in the
  // node, to another, or (V-shaped schedules) on the same GPUs.
  std::vector<Call> sends;
  std::optional<Call> sends_gather;  // over t, where each rank sent its part

  // Sharded weights, of one of `weight_pieces` of a block: gathered for each pass, and gradients
  // of `reduced_pieces` reduced, call after call: scattered over the sharing ranks (or exchanged in
  // int4), and summed among those that share alike.
  std::optional<Call> weights_gather, weights_gather_again;
  int kept_blocks = 0;  // the last ones, whose weights stay from the forward to the backward pass
  std::vector<Call> gradients_reduce;
  // Read and written where a piece is quantized.
  Bytes weights_quantized, gradients_quantized;
  std::optional<Call> outer_weights_gather;  // of embedding and head
  std::vector<Call> outer_gradients_reduce;
  Duration shard_handling;  // by the host, of each such call
  // For the experts of a block, over the ranks that hold the same ones.
  std::optional<Call> expert_weights_gather, expert_gradients_scatter;
  int weight_pieces = 1, reduced_pieces = 1;
  bool hides_sharding = true;  // hidden by computation; else the pass waits for all of it
};

}  // namespace lambcast
