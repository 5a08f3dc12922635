// The measurement to make first, so that the interval of a speed-up narrows, in view of what the
// user's calibration of the cluster holds already.
#pragma once

#include <span>
#include <string>

#include "models/training/run/error_source.h"

namespace lambcast {

// The measurement of a source (error_source.h). If the cluster was calibrated on logs of its own,
// the sizes and nodes that the run uses and the logs lack; empty if they lack none.
std::string measurement_for(std::size_t source, const TrainingPlan& training);

// The same for several runs: the general measurement if the cluster of one of them has no logs of
// its own, else each lack once.
std::string measurement_for(std::size_t source, std::span<const TrainingPlan* const> trainings);

}  // namespace lambcast
