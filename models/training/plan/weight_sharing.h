// Collectives of a micro batch with sharded gradients or weights (ZeRO stages 2 and 3, FSDP,
// ZeRO++, hybrid shards). A block's gradients are reduced to the ranks that update them, and
// weights are gathered before use; for experts, among the ranks that hold the same experts.
//
//   gradients   reduce_scatter in the shard, all_reduce between its copies; DeepSpeed's stage 2:
//               all_reduce, in buckets of blocks; quantized (qgZ): all_to_all of int4 in the node,
//               then between nodes
//   weights     all_gather, in 16 bits or int8 (qwZ); again before the backward pass, then within
//               secondary_ranks (hpZ), except for the kept blocks. Small weights stay whole: one
//               all_gather after each update
//
// Updated weights of ranks that share optimizer states (stages 1 and 2) are gathered after the
// step, in 16 bits. SDP4Bit gathers changes: a rank codes the change of its own weights in 4 bits,
// with a scale for each 2,048, and every rank adds the received changes to its weights. For its
// share, a rank reads the weight before and after and writes 4 bits; for all weights, it reads 4
// bits and a weight and writes a weight. These bytes are counted; the kernels were not timed.
//
// Sources: DeepSpeed runtime/zero/{stage3,partitioned_param_coordinator}.py,
// runtime/comm/coalesced_collectives.py; ZeRO++ arXiv:2306.10209; torch FSDP; SDP4Bit
// arXiv:2410.15526, section 3.1, and jindajia/SDP4Bit.
#pragma once

#include <vector>

#include "models/training/plan/exchange.h"
#include "models/training/plan/gradient_owners.h"
#include "models/training/plan/pipeline_plan.h"
#include "models/training/plan/step_part.h"

namespace lambcast {

// Adds the calls to `plan`, if gradients or weights are sharded. `parameters` are the parameters of
// one rank, by chunk; `gradient_bytes` is the size of an element on the wire
// (gradient_reduction.h).
void share_weights(PipelinePlan& plan, const ModelShape& model, const Parallelism& how,
                   const std::vector<parallel::RankParameters>& parameters,
                   const std::vector<Owners>& owners, double gradient_bytes);

// Elements of weights that are shared in principle but stay whole, on a rank without tensor
// parallelism, which DeepSpeed's stage 3 does not have.
struct PersistentWeights {
  double inside = 0, vocabulary = 0;
  double all() const { return inside + vocabulary; }
};
PersistentWeights persistent_weights(const ModelShape& model, const Parallelism& how);

// Returns how many of the last blocks keep their weights from the forward to the backward pass.
// DeepSpeed's stage 3 keeps the weights of a block, B elements, for one of two reasons. The head,
// H elements, lies between the passes.
//
//   reuse       the next use is at most R elements away (stage3_max_reuse_distance). Between the
//               two passes of a block followed by k blocks, the head is used twice, and each of
//               these blocks forward, backward, and once more if it is recomputed:
//
//                 2 H + (2 or 3) k B < R
//
//   look-ahead  weights are gathered ahead of their use until L elements are in memory
//               (stage3_max_live_parameters). A weight that the look-ahead finds in memory for a
//               later use is not released before that use. The last k blocks are found so if
//
//                 H + k B <= L
//
// Without a prefetch bucket nothing is gathered ahead. Source: fetch_sub_module and
// __params_to_release of DeepSpeed runtime/zero/partitioned_param_coordinator.py. Not modelled: a
// distance shorter than a block, under which a recomputed block is gathered a third time.
int kept_blocks(const ModelShape& model, const Parallelism& how);

// Returns the bytes per element of a block's gathered weights.
double block_weight_bytes(const ModelShape& model, const Parallelism& how);

// Returns the number of matrices of a block that are gathered. If the prefetch bucket is smaller
// than one of them, each matrix (all taken as equally large) is gathered separately, however small
// the bucket.
int gathered_matrices(const ModelShape& model, const Parallelism& how);

// Bytes per gathered weight: in the blocks, and in vocabularies.
struct GatheredBytes {
  double blocks = 2, outer = 2;
};
GatheredBytes gathered_bytes(const ModelShape& model, const Parallelism& how);

// Returns the parts that gather updated weights, in order. `held` are the parameters of the rank;
// `when` is appended to the names of the calls.
std::vector<StepPart> gather_weights(const std::vector<Owners>& owners,
                                     const parallel::RankParameters& held,
                                     const GatheredBytes& gathered, const Exchange& exchange,
                                     const char* when);

}  // namespace lambcast
