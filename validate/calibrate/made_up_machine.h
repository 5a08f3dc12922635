// For tests: a machine with known true parameters, and the tables that it would measure.
#pragma once

#include <cmath>
#include <random>
#include <vector>

#include "validate/calibrate/measured_series.h"

namespace lambcast::validate {

// A machine with four-GPU nodes, some distance from the values at which a calibration starts.
inline const char* const made_up_base = R"(
name = "made-up"
device = "a100-40g"
[node]
gpus = 4
gpu_peers = "nvlink"
gpu_link = { value = "200 GB/s", kind = "assumed", source = "test" }
gpu_nic = "26 GB/s"
[nic]
count = 4
network = "rdma"
nominal = "200 Gbit/s"
bandwidth = "20 GB/s"
[nccl]
protocols = ["LL", "Simple"]
slice = "1 MiB"
)";

struct Truth {
  const char* key;
  const char* text;
  double value;
};
inline const std::vector<Truth> truths{{"nccl.link_efficiency", "0.8", 0.8},
                                       {"nccl.nic_efficiency", "0.8", 0.8},
                                       {"nccl.LL.base", "12 us", 12},
                                       {"nccl.LL.network_hop", "6 us", 6},
                                       {"nccl.LL.local_hop", "1.5 us", 1.5},
                                       {"nccl.Simple.base", "30 us", 30},
                                       {"nccl.Simple.network_hop", "22 us", 22},
                                       {"nccl.Simple.local_hop", "9 us", 9}};

inline Cluster true_cluster() {
  Table table = Table::parse(made_up_base, "truth.toml");
  for (const Truth& truth : truths) table.set(truth.key, truth.text, "test");
  return decode_cluster(table, "truth.toml");
}

// Returns the table of the true machine, times log-normal noise of width `noise`.
inline Measurement made_up(Operation operation, int nodes, int per_node, double noise,
                           unsigned seed, double from = 1024, double to = 1e9) {
  Measurement table;
  table.operation = operation;
  table.ranks = nodes * per_node;
  table.nodes = nodes;
  table.provenance = {Kind::measured, "made-up"};
  MeasuredSeries series = series_of(table, true_cluster(), Backend::nccl);
  std::mt19937 random(seed);
  for (double size = from; size <= to; size *= 2) {
    // The sum of twelve uniform numbers is nearly normal, and equal on every platform.
    double normal = -6;
    for (int i = 0; i < 12; ++i) normal += static_cast<double>(random()) / 4294967296.0;
    table.rows.push_back(
        {Bytes(size), forecast_time(series, Bytes(size)).scaled(std::exp(noise * normal)), {}});
  }
  return table;
}

inline std::vector<Measurement> all_tables(double noise, unsigned seed) {
  std::vector<Measurement> tables;
  for (const auto operation :
       {Operation::all_reduce, Operation::all_gather, Operation::reduce_scatter})
    for (const int nodes : {1, 2, 4, 8})
      for (const int per_node : {2, 4})
        tables.push_back(made_up(operation, nodes, per_node, noise, seed++));
  return tables;
}

}  // namespace lambcast::validate
