// Determines which algorithm and protocol of NCCL each row of a table used, by NCCL's rule and the
// costs of a description. A fit to the tables adds no evidence about the other algorithms.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "topologies/cluster.h"
#include "validate/measurement.h"

namespace lambcast::validate {

struct TakenRow {
  Bytes size;
  std::string algorithm, protocol;
};

// Returns the algorithm and protocol of each row. Empty for MPI, whose algorithms share one set of
// constants.
std::vector<TakenRow> taken_by(std::span<const Measurement> tables, const Cluster& cluster,
                               Backend backend);

// Returns the names of the algorithms used for sizes from `from` to below `below`.
std::vector<std::string> algorithms_of(std::span<const TakenRow> rows, double from, double below);
std::vector<std::string> protocols_of(std::span<const TakenRow> rows);

}  // namespace lambcast::validate
