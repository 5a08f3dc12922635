// Time of each operation of a plan, its interval, and the bytes that it sends.
//
//   PassWork    share of a micro batch's forward or backward time (passage.h)
//   StageWork   a segment of the pipeline's replay (pass_price.h)
//   MemoryWork  bytes / copy bandwidth of the GPU
//   KernelWork  a measured curve, else max(bytes / copy bandwidth, launches) + waits
//               (models/optimizer/passes.h)
//   ProductWork FLOPs / a share of the GPU's peak
//   HostCopy    bytes / rates of buffers.h, and a wait for each
//   HostUpdate  bytes of all ranks of a node / the host memory bandwidth that updates reach
//   Call        the time of the collective without contention (collective_costs.h)
#pragma once

#include <optional>
#include <vector>

#include "models/device/compute_interval.h"
#include "models/training/plan/step_plan.h"
#include "models/training/price/collective_costs.h"
#include "models/training/price/cost_source.h"
#include "models/training/price/interval.h"

namespace lambcast {

// The passes of one pipeline stage over all micro batches; the parts add up to the time of the
// longest stage.
struct StagePasses {
  Duration forward, backward;  // kernels
  Duration exposed;            // collectives and sends that nothing overlaps
  Duration communication;      // in all collectives, hidden ones included
  Duration bubble;             // waits for other stages
};

// The NICs that a call keeps busy on the node of its stage, and the share of their rate that it
// takes if nothing else uses them.
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

// Interval of passes if only their collectives of one kind err. c is the share of the variance of
// this error that other collectives of the cluster have in common (topologies/common_error.h).
struct WiresOfKind {
  CallKind kind;
  Interval wires;
  double c = 0;
};

// Total price of an operation over all its repetitions.
struct Price {
  Duration time;
  // Times with all collectives, or all computations, at the ends of their intervals
  // (topologies/calibration.h, models/device/compute_interval.h).
  Interval wires, compute;
  // The share of such intervals that should hold the true value. Absent if held-out forecasts
  // support none: collectives without a calibration, and compression kernels.
  std::optional<double> coverage = 1;
  bool calibrated = true;             // whether a collective is inside the calibrated range
  Basis basis = Basis::this_machine;  // source of the time of a pass
  // network_bytes_per_node is the sum over those ranks of a node that belong to one stage.
  Bytes wire_bytes_per_gpu, network_bytes_per_node;
  Duration least_on_nics;  // time of network_bytes_per_node at the limit of a node's NICs
  NicUse nics;             // for a call between nodes, under a pipeline
  double num_collectives = 0;
  // The share of a slowdown of passes that is a wait for NICs. It counts as exposed communication
  // for every category of operation.
  double waits_for_nics = 0;
  std::vector<WiresOfKind> wires_by_kind;  // of a layout's passes
  std::optional<StagePasses> passes;       // totals of the stage; set for its last segment only
  // Network load of this segment; used only by the shared-network model (shared_step.h). `hidden`
  // is the share of the load that overlaps kernels.
  std::vector<Load> loads;
  double hidden = 0;

  Duration at(End end) const;
};

// Returns one price for each operation, in the plan's order. Adds the sources of every number used
// for a price to `sources`.
std::vector<Price> price(const StepPlan& plan, const TrainingPlan& training, CollectiveCosts& costs,
                         Intervals intervals = Intervals::found, CostSources* sources = nullptr);

}  // namespace lambcast
