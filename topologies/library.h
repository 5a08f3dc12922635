// The sections [nccl] and [mpi] of a description: the costs of a communication library on the
// machine. Values that are left out are the library's own constants (library_defaults.h) times the
// factors typical of fabrics (priors.h).
#pragma once

#include <optional>

#include "sim/base/range.h"
#include "topologies/cluster.h"

namespace lambcast {

struct Surroundings {
  NetworkKind network;
  bool pcie_peers;
  std::optional<bool> infiniband;  // whether nic.link_layer names it, if the key is present
  bool link_known;                 // the rate of the GPUs' links was measured or fitted
  NicRate nic_rate;
  const Priors& priors;
};

// Reads a share or factor. If the key is absent, the value is `otherwise`, with kind assumed.
Sourced<double> factor(const Table& table, std::string_view key, const Range<double>& range,
                       double otherwise = 1);

// Throws Error (usage) with file, line and key for invalid values.
LibrarySpec decode_library(const Table& table, DecisionRules standard, const Surroundings& around);

}  // namespace lambcast
