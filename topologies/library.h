// The sections [nccl] and [mpi] of a description: what a communication library makes of the machine
// around it, with its own constants (library_defaults.h) and what is typical of fabrics (priors.h)
// where nothing is said.
#pragma once

#include "sim/base/range.h"
#include "topologies/cluster.h"

namespace lambcast {

struct Surroundings {
  NetworkKind network;
  bool pcie_peers;
  bool no_infiniband;  // nic.link_layer says another
  bool link_known;     // somebody measured or fitted what the GPUs' links carry
  NicRate nic_rate;
  int connections;  // that NCCL opens for a channel over TCP on this platform
  const Priors& priors;
};

// A share or factor, assumed to be `otherwise` where the key is left out.
Sourced<double> factor(const Table& table, std::string_view key, const Range<double>& range,
                       double otherwise = 1);

// Throws Error (usage) with file, line and key for what cannot be.
LibrarySpec decode_library(const Table& table, DecisionRules standard, const Surroundings& around);

}  // namespace lambcast
