// Experts of one layer divided over ep ranks: what a micro batch computes in such a block and what
// carries its tokens to the ranks of their experts (dispatch) and back (combine). Twice forward,
// twice backward, and twice more where the block is computed again.
//
// T tokens of a rank, k experts a token, E experts, h hidden; each exchange moves from every rank
//
//   all_to_all     2 T k h bytes, a copy for each expert ((ep - 1) / ep of them leave the rank)
//   hierarchical   the same among the ranks of a node, and again among the nodes, in messages as
//                  many times larger as a node has ranks: first inside, then outside (Tutel's
//                  two-dimensional all-to-all, arXiv 2206.03382, section 3.3; DeepSpeed-MoE,
//                  arXiv 2201.05596, section 5.3)
//   deduplicated   2 T h bytes to each node, and inside to each rank, that has any of the token's
//                  experts, forwarded as they arrive, so that the slower leg counts (DeepEP,
//                  HybridEP). With experts chosen evenly, of g owners a token meets
//                  g (1 - prod_{j < k} (E - E/g - j) / (E - j))
//
// Dropless exchanges carry exactly the chosen copies: all ranks wait for the fullest one, which has
// `imbalance` times the mean. With a capacity c every exchange carries c times the even share, full
// or not (DeepSpeed). Experts divided over etp ranks gather the rows of all of them before and
// scatter after.
//
// Kernels for each expert by itself (several streams: Transformer Engine's GroupedLinear until
// 2026, DeepSpeed's loop) are started after the host has waited for the token counts, so none of
// the launches is hidden. Each expert takes 2 products forward, 4 backward, and in 8 and 4 bits
// casts and re-ordered scales: `expert_launches` of the device's framework_launch, in 16 bits the
// products' part. One kernel for all of them, in a captured graph, costs none of that.
//
// Overlapped (Megatron-LM --overlap-moe-expert-parallel-comm): the exchanges of one micro batch's
// forward pass overlap the backward pass of another, and the other way round
// (models/parallel/pipeline_schedule.h). The exposed cost is the part that computation does not
// cover, plus the multiprocessors that the exchange occupies. Unless a graph captured it, the host
// starts so many pieces one by one that a block lasts at least `overlapped_launches`. Sources:
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

// How a rank puts its tokens into the places of what it sends: copied, or multiplied by one-hot
// tensors (models/device/expert_time.h).
enum class Routing { sparse, one_hot };
const std::vector<std::string>& routing_names();

enum class Dispatch { all_to_all, hierarchical, deduplicated };
const std::vector<std::string>& dispatch_names();

// How a rank's experts are computed: a kernel for each one by itself, or one for all.
enum class ExpertKernels { each, grouped };
const std::vector<std::string>& expert_kernels_names();

// Settings of a run for its experts.
struct ExpertUse {
  Dispatch dispatch = Dispatch::all_to_all;
  double capacity_factor = 0;  // of the even share of an expert; 0: dropless
  // Rows of the fullest rank over the mean, dropless.
  Sourced<double> imbalance{1, {Kind::assumed, "evenly filled"}};
  bool overlapped = false;
  ExpertKernels kernels = ExpertKernels::each;
  Routing routing = Routing::sparse;

  bool operator==(const ExpertUse&) const = default;
};

// DeepSpeed drops tokens beyond an even share, and multiplies unless use_tutel is set
// (moe/sharded_moe.py, MOELayer).
inline const ExpertUse deepspeed_experts{.capacity_factor = 1, .routing = Routing::one_hot};

// Copies of a token that are carried or computed on: k imbalance, or k capacity_factor.
double visits(const ExpertUse& use, std::int64_t per_token);

// Returns the expected number of distinct owners a token meets that chooses `per_token` of
// `experts`, shared evenly by `owners`.
double owners_met(std::int64_t experts, std::int64_t per_token, int owners);

struct ExpertPlan {
  BlockWork block;           // of a layer with experts
  std::vector<bool> layers;  // which have them
  // Legs of one exchange: inside a node (or all of it), and between nodes.
  std::optional<Call> inside, between;
  bool at_once = false;                           // the legs side by side, else one after the other
  std::optional<Call> rows_gather, rows_scatter;  // over etp
  bool overlapped = false;
  // Launches of both passes that nothing hides, and that both passes cannot be shorter than.
  double launches = 0, least_launches = 0;
  int predicted_layers = 0;  // blocks of this kind behind the last, each with a head
};

// Starts of kernels that a block with experts waits for, and that its passes cannot be shorter
// than.
struct HostTime {
  Duration forward, backward, least_forward, least_backward;
};
HostTime host_time(const ExpertPlan& plan, Duration launch);
// Provenance of the numbers of launches.
Provenance expert_launches_from();

// Nothing for models without experts. `dense` is the block without them.
std::optional<ExpertPlan> expert_plan(const ModelShape& model, const Parallelism& how,
                                      const BlockWork& dense);

}  // namespace lambcast
