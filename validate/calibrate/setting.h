// A measured table as a question to the model.
#pragma once

#include "topologies/collective_forecast.h"
#include "validate/measurement.h"

namespace lambcast::validate {

// Throws Error when the table holds no collective of ours, does not say over how many nodes its
// ranks lie, or does not fit the cluster. A table on one rank is refused.
CollectiveSetting setting_of(const Measurement& table, const Cluster& cluster, bool mpi);

}  // namespace lambcast::validate
