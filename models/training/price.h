// How long each operation of a plan lasts, how far that may be off, and what it puts on the wire.
//
//   PassWork    share of a micro batch's forward or backward time (models/device/compute.h), scaled
//   as the
//               cluster's stack says
//   MemoryWork  bytes / copy bandwidth of the GPU
//   KernelWork  a measured curve, else max(bytes / copy bandwidth, launches) + waits
//   (optimizer_cost.h) HostCopy    bytes over the rates of buffers.h, and a wait each Call the
//   collective alone on the cluster (collective_costs.h)
#pragma once

#include <optional>
#include <vector>

#include "models/device/compute_interval.h"
#include "models/training/step_plan.h"

namespace lambcast {

// Of all repetitions of one operation together.
struct Price {
  Duration time;
  // What it may take less or more (topologies/calibration.h, models/device/compute_interval.h).
  Duration shorter, longer;
  // The share of such intervals that should hold; absent where held-out forecasts support none:
  // collectives without a calibration, kernels of compression.
  std::optional<double> coverage = 1;
  bool calibrated = true;             // a collective inside what the cluster was calibrated on
  Basis basis = Basis::this_machine;  // what a pass rests on
  Bytes wire_bytes_per_gpu, network_bytes_per_node;
  std::int64_t num_collectives = 0;
};

// One price an operation, in their order.
std::vector<Price> price(const StepPlan& plan, const Training& training, CollectiveCosts& costs);

}  // namespace lambcast
