// Numbering of a job's ranks over the axes of parallelism, and the resulting places of process
// groups.
//
// A rank is a number in a mixed radix, the innermost axis first. Megatron-LM's order tp-cp-ep-dp-pp
// (core/parallel_state.py, RankGenerator; DeepSpeed's ['pipe', 'data', 'model'] is the same):
//   rank = tp_i + tp (cp_i + cp (dp_i + dp pp_i))
// Colossal-AI puts data parallelism outermost (HybridParallelPlugin, dp_outside): tp-cp-ep-pp-dp.
// Ranks fill nodes in order: rank r is GPU r mod gpus_per_node of node r / gpus_per_node.
//
// Experts have a separate grid over the same ranks: in it cp is 1, tp is etp (by default that of
// the dense layers) and dp_expert = tp cp dp / (etp ep). So ep adds no ranks:
//   world = tp cp dp pp
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

#include "sim/base/error.h"
#include "sim/collectives/process_group.h"

namespace lambcast::parallel {

// Tensor, context, expert, data and pipeline parallelism.
enum class Axis { tp, cp, ep, dp, pp };
inline constexpr std::size_t axis_count = 5;

std::string_view name_of(Axis axis);

// Order of the axes, innermost first.
using AxisOrder = std::array<Axis, axis_count>;
inline constexpr AxisOrder default_order = {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp};

// Parses "tp-cp-ep-dp-pp": each axis once, innermost first. Throws Error (usage).
AxisOrder parse_order(std::string_view text, const Where& where);
std::string to_text(const AxisOrder& order);

class AxisSet {
 public:
  constexpr AxisSet(std::initializer_list<Axis> axes) {
    for (const Axis axis : axes) bits_ |= bit(axis);
  }
  static constexpr AxisSet all() { return {Axis::tp, Axis::cp, Axis::ep, Axis::dp, Axis::pp}; }
  constexpr bool has(Axis axis) const { return (bits_ & bit(axis)) != 0; }
  constexpr AxisSet without(AxisSet others) const {
    AxisSet left = *this;
    left.bits_ &= ~others.bits_;
    return left;
  }

 private:
  static constexpr unsigned bit(Axis axis) { return 1U << static_cast<unsigned>(axis); }
  unsigned bits_ = 0;
};

struct ParallelLayout {
  int tp = 1;
  int cp = 1;
  int ep = 1;
  int dp = 1;
  int pp = 1;
  int virtual_stages = 1;  // chunks of layers per pipeline stage
  int gpus_per_node = 1;
  AxisOrder order = default_order;
  int etp = 0;  // tensor parallelism within an expert; 0: as tp

  std::int64_t world() const { return std::int64_t{tp} * cp * dp * pp; }
  int expert_tp() const { return etp == 0 ? tp : etp; }
  // Returns the number of ranks with the same experts; it must be a whole number (expert_grid).
  int expert_replicas() const { return tp * cp * dp / (expert_tp() * ep); }

  bool operator==(const ParallelLayout&) const = default;
};

// The ranks as points of a grid, with the size of each axis.
struct RankGrid {
  AxisOrder order = default_order;
  std::array<int, axis_count> sizes = {1, 1, 1, 1, 1};  // indexed by Axis
  int gpus_per_node = 1;

  int size(Axis axis) const { return sizes[static_cast<std::size_t>(axis)]; }
  int ranks() const;
};

// Returns whether the order places pipeline stages between expert and data parallelism
// (tp-cp-ep-pp-dp). Stages of experts and of all other layers then have the same ranks only if data
// parallelism is divided in two: ep ranks inside the pipeline, dp / ep around it. Colossal-AI's
// mesh does so (booster/plugin/moe_hybrid_parallel_plugin.py, moe_dp_outside); Megatron-LM refuses
// such an order (core/parallel_state.py: pipeline groups of both kinds must be equal).
bool has_pipeline_around_experts(const ParallelLayout& layout);

// Returns the grid of all layers except experts. ep is 1 unless has_pipeline_around_experts(), in
// which case replicas are the axes dp and ep together.
RankGrid dense_grid(const ParallelLayout& layout);
RankGrid expert_grid(const ParallelLayout& layout);  // cp is 1, dp is expert_replicas()

using Coordinates = std::array<int, axis_count>;  // indexed by Axis
Coordinates coordinates_of(const RankGrid& grid, int rank);
int rank_of(const RankGrid& grid, const Coordinates& coordinates);

// Returns the group of ranks that differ only in `members`, for example
//   {tp}      activations of tensor parallelism      {dp, cp, ep}  gradients
//   {tp, pp}  norms and overflow of one model copy   {cp}      keys and values
// Its siblings are the equal groups on the same nodes, except those that differ in `apart`: axes
// whose ranks make the call at other times. How siblings share NICs is modelled elsewhere
// (models/training/price/nic_sharing.h).
//
// If lies_evenly() is false, the group of rank 0 represents all groups, and a second stride inside
// the node or between nodes is replaced by the first.
ProcessGroup group(const RankGrid& grid, AxisSet members, AxisSet apart = {});

// Returns whether member i of every group has the slot and node that group() states, relative to
// the group's first member. False if groups straddle nodes (tp 3 on 8 GPUs), or have two distances
// (dp and cp with pp between them).
bool lies_evenly(const RankGrid& grid, AxisSet members);

// Returns a rank of one pipeline stage and the corresponding rank of another stage: neighbours that
// pass activations, or the first and last stage, which sum the gradient of a tied embedding.
// Siblings are the pairs of other ranks of the stage on the same node. If both stages are the same,
// the group is a single rank.
ProcessGroup stage_pair(const RankGrid& grid, int from_stage, int to_stage);

}  // namespace lambcast::parallel
