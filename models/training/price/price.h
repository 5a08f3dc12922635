// How long each operation of a plan lasts, how far that may be off, and what it puts on the wire.
//
//   PassWork    share of a micro batch's forward or backward time (passage.h)
//   StageWork   a segment of the pipeline's replay (pass_price.h)
//   MemoryWork  bytes / copy bandwidth of the GPU
//   KernelWork  a measured curve, else max(bytes / copy bandwidth, launches) + waits
//               (models/optimizer/passes.h)
//   ProductWork FLOPs / a share of the GPU's peak
//   HostCopy    bytes over the rates of buffers.h, and a wait each
//   HostUpdate  bytes of all ranks of a node over what updates reach of the host's memory
//   Call        the collective alone on the cluster (collective_costs.h)
#pragma once

#include <optional>
#include <vector>

#include "models/device/compute_interval.h"
#include "models/training/plan/step_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"
#include "models/training/price/interval.h"

namespace lambcast {

// The passes of one pipeline stage over all micro batches; their sum is the time of the longest
// stage.
struct StagePasses {
  Duration forward, backward;  // computing
  Duration exposed;            // in collectives and sends that nothing hides
  Duration communication;      // in all collectives, hidden ones included
  Duration bubble;             // waiting for other stages
};

// The NICs that a call keeps busy on the node of its stage, and the share of their rate that it
// takes while nothing else uses them.
struct NicUse {
  int node = 0;
  std::vector<int> used;
  double share = 0;
};

// A collective that passes issue `times` times.
struct Load {
  Call call;
  double times = 0;
};

// Total price of an operation over all its repetitions.
struct Price {
  Duration time;
  // With every collective, or every computation, at the ends of its interval
  // (topologies/calibration.h, models/device/compute_interval.h).
  Interval wires, compute;
  // The share of such intervals that should hold; absent where held-out forecasts support none:
  // collectives without a calibration, kernels of compression.
  std::optional<double> coverage = 1;
  bool calibrated = true;             // a collective inside what the cluster was calibrated on
  Basis basis = Basis::this_machine;  // what a pass rests on
  // The latter count the ranks of one stage on a node.
  Bytes wire_bytes_per_gpu, network_bytes_per_node;
  Duration least_on_nics;  // of these bytes, at the limit of a node's NICs
  NicUse nics;             // of a call between nodes, under a pipeline
  double num_collectives = 0;
  // Share of a slowdown of passes that is a wait for NICs. It counts as exposed communication in
  // every category of operation.
  double waits_for_nics = 0;
  std::optional<StagePasses> passes;  // of the last segment of a stage: totals of the stage
  // Network load of this segment; used only by the shared-network model (shared_step.h). `hidden`
  // is the share of it that hides behind kernels.
  std::vector<Load> loads;
  double hidden = 0;

  Duration at(End end) const;
};

// One price an operation, in their order. With `sources`, adds what they rest on: every number that
// a price was made of.
std::vector<Price> price(const StepPlan& plan, const TrainingPlan& training, CollectiveCosts& costs,
                         Intervals intervals = Intervals::found, CostSources* sources = nullptr);

}  // namespace lambcast
