// Names the measurement to make first to narrow the interval of a speed-up. It takes into account
// the user's calibration of the cluster.
#pragma once

#include <span>
#include <string>

#include "models/training/run/error_source.h"

namespace lambcast {

// Returns the measurement for a source of error (error_source.h). If the cluster was calibrated on
// its own logs, it names the sizes and nodes that the run uses and the logs lack; empty if they
// lack none.
std::string measurement_for(std::size_t source, const TrainingPlan& training);

// Returns the measurement for several runs. It is the general measurement if the cluster of one of
// them has no logs, else each missing measurement once.
std::string measurement_for(std::size_t source, std::span<const TrainingPlan* const> trainings);

}  // namespace lambcast
