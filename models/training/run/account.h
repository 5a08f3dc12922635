// Totals of an executed step: the time of its parts, the bytes on the wires, and the evidence for
// its time.
#pragma once

#include <optional>

#include "models/training/run/execute.h"

namespace lambcast {

// Totals of a step. Under a pipeline, all parts are means over its stages and add up to the step.
struct StepMetrics {
  Duration step_time;
  // Interval of step_time from the errors of wires and computations (interval.h).
  Duration step_time_low, step_time_high;
  // Share of steps that should lie inside the interval. Absent if held-out forecasts do not support
  // one: without a calibration, with compression, or if compute times are of another GPU or model.
  std::optional<double> coverage;
  bool calibrated = true;     // whether collectives are inside the calibrated range
  Basis basis = Basis::rate;  // evidence for forward and backward times
  Duration forward, backward, gradient_comm, exposed_comm, compress, decompress, optimizer, bubble;
  std::optional<StandIn> stand_in;  // as in Execution
  Bytes wire_bytes_per_gpu;
  Bytes network_bytes_per_node;  // of all stages on a node, averaged over nodes
  double num_collectives = 0;    // under a pipeline averaged over its stages
};

StepMetrics account(const StepPlan& plan, const std::vector<Price>& prices,
                    const Execution& execution);

}  // namespace lambcast
