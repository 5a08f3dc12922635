// Several collectives on one cluster at the same time: the flow model shares NICs, links and
// uplinks among them.
//
//   [[jobs]]
//   op = "all_reduce"
//   size = "64 MiB"
//   gpus = 16
//   first_node = 2        # counted from 0, as is first_gpu
//
// Optional: name, gpus_per_node (default: all of the cluster's), first_gpu, stride, node_stride,
// siblings (sim/collectives/process_group.h), start ("2 ms"), times (repetitions in sequence),
// algorithm, protocol. Each job uses the algorithm and protocol that it would use without the
// others. A GPU may belong to several jobs, whose streams then share its links.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "topologies/cluster.h"

namespace lambcast {

struct CollectiveJob {
  std::string name;
  Op op = Op::all_reduce;
  Bytes size;
  ProcessGroup group;
  Place place{};
  Duration start{};
  int times = 1;
  std::string algorithm, protocol;  // empty: see CollectiveSetting
};

// Times from the job's start to the end of its last repetition: without the other jobs, and with
// them.
struct JobForecast {
  std::string algorithm, protocol;
  Duration alone, together;
  // Interval of `together`. Tables describe one collective at a time, so a job that waits for
  // another is not calibrated.
  CalibratedInterval interval{Duration(), Duration()};
};

std::vector<CollectiveJob> decode_jobs(const Table& root, const Cluster& cluster);

// With `expand` every round is an event of its own.
std::vector<JobForecast> forecast_jobs(const Cluster& cluster,
                                       const std::vector<CollectiveJob>& jobs, Backend backend,
                                       bool expand);

}  // namespace lambcast
