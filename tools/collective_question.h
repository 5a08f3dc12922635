// One collective, or several at the same time, as named by flags and by arguments of Python. They
// are read, checked and converted to the input of a forecast by topologies/.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/output/collective_output.h"
#include "sim/base/overrides.h"

namespace lambcast {

struct CollectiveWords {
  std::string op = "all_reduce", cluster, backend = "nccl", algorithm = "auto", protocol = "auto";
  std::string network = "analytic", symmetry = "auto";
  std::string begin = "8", end, factor = "2";  // sizes, as in nccl-tests' -b, -e and -f
  int gpus = 0;
  std::optional<int> gpus_per_node{};  // default: as many ranks as fit
  int stride = 1, node_stride = 1, siblings = 1;
  std::string jobs;  // a file of collectives that run at the same time, instead of a single one
  Overrides settings{};
};

// Returns the operations of the library, and DeepSpeed's compressed_allreduce.
const std::vector<std::string>& collective_names();

// Return the cluster with its settings, and the operation named by a flag. All functions throw
// Error (usage) with the name of the flag.
Cluster cluster_of(const CollectiveWords& words);
CollectiveAnswer answer_of(const CollectiveWords& words, const Cluster& cluster);

struct JobsAnswer {
  std::vector<CollectiveJob> jobs;
  std::vector<JobForecast> forecasts;
};
JobsAnswer jobs_answer_of(const CollectiveWords& words, const Cluster& cluster);

}  // namespace lambcast
