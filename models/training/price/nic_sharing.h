// NICs that several stages of a pipeline share, and the lower bound that they set on a step.
//
// Stages whose ranks lie on one node (order tp-cp-ep-pp-dp) reduce gradients and gather weights
// over the same NICs. Each stage begins when its own passes end, so their calls overlap in part. A
// call that lasts T without contention and keeps its NICs busy for w of that takes the share w / T
// of their rate, and shares the NICs with others at max-min fair rates
// (sim/network/flow_network.h). With release times r_j and one NIC, the last call ends at
//
//   max over k of  r_k + sum of w_j over all j with r_j >= r_k
//
// if no call is slower than its NIC. Calls during the passes are not included: meeting_stages.h
// prices them.
//
// A step lasts at least as long as the bytes that leave its busiest node take at the limit of the
// node's NICs (topologies/nic_limit.h). This also bounds the low end of its interval.
#pragma once

#include <memory>
#include <vector>

#include "models/training/price/price.h"

namespace lambcast {

// Returns the number of stages of a node that make this call of the passes at once, which the
// siblings of the call include; 1 for a send.
int stages_among(const PipelinePlan& plan, const Call& call);

// Returns the NICs that a call of a stage uses on the stage's node while it lasts `time`.
NicUse nic_use(const PipelinePlan& plan, int stage, const Call& call, Bytes per_node, Duration time,
               const TrainingPlan& training);

// Returns the bytes that leave each node with the first rank of a stage in a step, summed over all
// stages of the node.
std::vector<Bytes> bytes_by_node(const StepPlan& plan, const std::vector<Price>& prices);

// Returns the lower bound of a step that the NICs of its busiest node set.
Duration least_on_nics(const StepPlan& plan, const std::vector<Price>& prices);

// Calls of a step, as flows over the NICs that they share.
class NicSharing {
 public:
  NicSharing(const StepPlan& plan, const std::vector<Price>& prices);

  // Whether calls of two stages use one NIC.
  bool any() const { return any_; }
  const Topology& topology() const { return topology_; }
  // Returns a program for each operation that uses a NIC shared by several stages, and null for the
  // others. Without contention, the program lasts as long as the operation's price at `end`.
  std::vector<std::shared_ptr<const CommProgram>> programs(End end) const;

 private:
  const std::vector<Price>& prices_;
  Topology topology_;
  std::vector<std::vector<LinkId>> paths_;  // by operation; empty if it shares no NIC
  bool any_ = false;
};

}  // namespace lambcast
