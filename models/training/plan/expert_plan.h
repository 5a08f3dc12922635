// Experts of one layer divided over ep ranks: the work of a micro batch in such a block, and the
// collectives that send its tokens to their experts (dispatch) and back (combine). There are two
// exchanges forward and two backward, and two more if the block is recomputed.
//
// With T tokens of a rank, k experts per token, E experts and hidden size h, each exchange sends
// from every rank
//
//   all_to_all     2 T k h bytes, a copy for each expert ((ep - 1) / ep of them leave the rank)
//   hierarchical   the same among the ranks of a node, and again among the nodes, in messages as
//                  many times larger as a node has ranks: first inside, then outside (Tutel's
//                  two-dimensional all-to-all, arXiv 2206.03382, section 3.3; DeepSpeed-MoE,
//                  arXiv 2201.05596, section 5.3)
//   deduplicated   2 T h bytes to each node, and inside to each rank, that has any of the token's
//                  experts, forwarded as they arrive, so that the slower leg counts (DeepEP,
//                  HybridEP). With experts chosen evenly, the number of the g owners that a token
//                  is sent to is g (1 - prod_{j < k} (E - E/g - j) / (E - j))
//
// Dropless exchanges carry exactly the chosen copies: all ranks wait for the one with the most
// copies, `imbalance` times the mean. With a capacity factor c every exchange carries c times the
// even share, full or not (DeepSpeed).
//
// With sequence parallelism each rank of a tensor group has its own tokens: the etp ranks of a
// divided expert gather all their rows before the products and scatter them after. Without it the
// t ranks of a tensor group have the same tokens and each sends copies of etp / t of them
// (DeepSpeed drop_tokens): the ranks of a divided expert receive the same rows and sum their
// partial results (an all-reduce), and if etp < t the results of all shares are gathered over the
// tensor group (gather_tokens; DeepSpeed moe/mappings.py). Megatron-LM does not train experts
// with tensor parallelism alone (models/parallel/layout_rules.h).
//
// If each expert has its own kernels (several streams: Transformer Engine's GroupedLinear until
// 2026, DeepSpeed's loop), the host starts them after it has waited for the token counts, so none
// of the launches is hidden. Each expert takes 2 products forward and 4 backward, and in 8 and 4
// bits also casts and re-ordered scales: `expert_launches` of the device's framework_launch, in 16
// bits the part for products. One kernel for all experts, in a captured graph, has no such cost.
//
// Overlapped (Megatron-LM --overlap-moe-expert-parallel-comm): the exchanges of one micro batch's
// forward pass overlap the backward pass of another, and the other way round
// (models/parallel/pipeline_schedule.h). The exposed cost is the part that computation does not
// cover, plus the multiprocessors that the exchange occupies. Without a captured graph, the host
// starts many pieces one by one, so that a block takes at least `overlapped_launches`. Sources:
// DeepSpeed moe/sharded_moe.py; Megatron-LM core/transformer/moe/token_dispatcher.py.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/device/block_time.h"
#include "models/training/plan/work.h"
#include "sim/base/provenance.h"

namespace lambcast {

struct Parallelism;

// How a rank sorts its tokens into the messages that it sends: by copies, or by products with
// one-hot tensors (models/device/expert_time.h).
enum class Routing { sparse, one_hot };
const std::vector<std::string>& routing_names();

enum class Dispatch { all_to_all, hierarchical, deduplicated };
const std::vector<std::string>& dispatch_names();

// Whether each expert of a rank has kernels of its own, or one kernel computes all of them.
enum class ExpertKernels { each, grouped };
const std::vector<std::string>& expert_kernels_names();

// Expert settings of a run.
struct ExpertUse {
  Dispatch dispatch = Dispatch::all_to_all;
  double capacity_factor = 0;  // multiple of an expert's even share; 0: dropless
  // Ratio of the most rows on any rank to the mean, if dropless.
  Sourced<double> imbalance{1, {Kind::assumed, "evenly filled"}};
  bool overlapped = false;
  ExpertKernels kernels = ExpertKernels::each;
  Routing routing = Routing::sparse;

  bool operator==(const ExpertUse&) const = default;
};

// DeepSpeed's defaults: it drops tokens beyond an even share, and dispatches by products unless
// use_tutel is set (moe/sharded_moe.py, MOELayer).
inline const ExpertUse deepspeed_experts{.capacity_factor = 1, .routing = Routing::one_hot};

// Returns the copies per token that are sent or computed: k x imbalance, or k x capacity_factor.
double visits(const ExpertUse& use, std::int64_t per_token);

// Returns the expected number of distinct owners of the `per_token` experts that a token chooses,
// if `owners` share all `experts` evenly.
double owners_met(std::int64_t experts, std::int64_t per_token, int owners);

struct ExpertPlan {
  BlockWork block;           // a block with experts
  std::vector<bool> layers;  // whether each layer has experts
  // Parts of one exchange: inside a node (or the whole exchange if it has one part), and between
  // nodes.
  std::optional<Call> inside, between;
  bool at_once = false;  // whether both parts run at the same time
  // Over the ranks of an expert: rows gathered and scattered, or partial results of them summed.
  std::optional<Call> rows_gather, rows_scatter, rows_sum;
  std::optional<Call> shares_gather;  // over the ranks with the same tokens: results of each share
  bool overlapped = false;
  // Number of launches in both passes that nothing hides, and number of launches whose time is a
  // lower bound of both passes.
  double launches = 0, least_launches = 0;
  int predicted_layers = 0;  // blocks of this kind after the model's last one, each with a head
};

// Launch times that the passes of a block with experts wait for, and lower bounds of the passes.
struct HostTime {
  Duration forward, backward, least_forward, least_backward;
};
HostTime host_time(const ExpertPlan& plan, Duration launch);
// Provenance of the numbers of launches.
Provenance expert_launches_from();

// Returns the plan; nothing for models without experts. `dense` is the block without experts.
std::optional<ExpertPlan> expert_plan(const ModelShape& model, const Parallelism& how,
                                      const BlockWork& dense);

}  // namespace lambcast
