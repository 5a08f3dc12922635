// Which algorithm and protocol of NCCL every row of a table took, by its rule and the costs of a
// description: what a fit to the tables says of the others is no more than was known before.
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

// None of MPI, whose algorithms share one set of constants.
std::vector<TakenRow> taken_by(std::span<const Measurement> tables, const Cluster& cluster,
                               Backend backend);

// Returns the algorithms of sizes from `from` to `below`, by name.
std::vector<std::string> algorithms_of(std::span<const TakenRow> rows, double from, double below);
std::vector<std::string> protocols_of(std::span<const TakenRow> rows);

}  // namespace lambcast::validate
