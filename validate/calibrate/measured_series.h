// A measured table as a question to the model: the collectives it consists of, ready to be asked
// for the sizes of its rows.
//
// Most tables are one collective. DeepSpeed's compressed exchange over MPI (compressed_allreduce of
// S bytes of fp32; deepspeed/runtime/comm/mpi.py) is three: every rank gathers its chunk of the
// signs from all others, S/32 in total; then the signs are all-gathered, S/32, and the scales, 4 B
// a rank. Over NCCL such a table also holds the time of our kernels and is not forecast here.
#pragma once

#include "topologies/collective_forecast.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct MeasuredSeries {
  struct Part {
    CollectiveSeries series;
    double share;  // of the table's size, plus
    Bytes fixed;
  };
  std::vector<Part> parts;
  int ranks = 0, nodes = 0, gpus_per_node = 0;
};

// As the table says, or from its GPUs per node; 1 when it says neither.
int nodes_of(const Measurement& table);

// Throws Error when the table holds nothing of the above, does not say over how many nodes its
// ranks lie, does not fit the cluster, or is on one rank.
MeasuredSeries series_of(const Measurement& table, const Cluster& cluster, bool mpi);

Duration forecast_time(MeasuredSeries& series, Bytes size);

}  // namespace lambcast::validate
