// One optimizer step: planned (step_plan.h), priced (price.h), executed as a task graph, and its
// account.
#pragma once

#include <optional>

#include "models/training/price.h"
#include "models/training/step_plan.h"
#include "sim/engine/engine.h"

namespace lambcast {

// Under a pipeline all parts are means over its stages, and add up to the step.
struct StepMetrics {
  Duration step_time;
  // With every collective at the low or high end of its interval (topologies/calibration.h) and
  // every computation at that of its own (models/device/compute_interval.h), d and e away:
  //
  //   step_time -+ sqrt(d^2 + e^2)
  //
  // Collectives are taken to err together and so are computations, the two apart, as wires and GPUs
  // are. Where wires were fitted to whole steps, the errors of the two cancel in part, and where
  // collectives hide behind the backward pass, they do not add up: the interval is too wide then.
  Duration step_time_low, step_time_high;
  // The share of steps that should lie inside; absent where held-out forecasts do not support one:
  // without a calibration, with compression, or where compute is not of the same GPU and model.
  std::optional<double> coverage;
  bool calibrated = true;     // collectives lie inside what the cluster was calibrated on
  Basis basis = Basis::rate;  // what forward and backward rest on
  Duration forward, backward, gradient_comm, exposed_comm, compress, decompress, optimizer, bubble;
  Bytes wire_bytes_per_gpu;
  Bytes network_bytes_per_node;
  double num_collectives = 0;  // under a pipeline the mean over its stages
};

// What was planned and what ran, for traces and explanations.
struct StepRun {
  StepPlan plan;
  std::vector<Price> prices;
  TaskGraph graph;  // a task for each operation, of the same number
  Timeline timeline;
  StepMetrics metrics;
};

StepRun run_step(const TrainingPlan& training, const Stage& stage, CollectiveCosts& costs);

// How long the plan takes at these prices.
Duration step_time(const StepPlan& plan, const std::vector<Price>& prices);

// The parts of a step, from what was planned and what ran.
StepMetrics account(const StepPlan& plan, const std::vector<Price>& prices, const TaskGraph& graph,
                    const Timeline& timeline);

}  // namespace lambcast
