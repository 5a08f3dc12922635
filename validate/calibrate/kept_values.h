// Values about which the tables of a calibration contain nothing, and which must not follow fitted
// values of the same description. They are stated in it.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "validate/calibrate/calibrate.h"

namespace lambcast::validate {

// Returns latencies inside one node if all tables cover several nodes, and of trees if no row used
// one.
std::vector<KeptLatency> kept_latencies(const Cluster& base, std::span<const Measurement> tables,
                                        Backend backend);

// Returns nccl.tree_efficiency, a share of what rings reach, if only rings were measured between
// nodes over RDMA. The share c of the change of nic_efficiency applies to trees and NVLS too:
//
//   tree_efficiency' = tree_efficiency (nic_efficiency / nic_efficiency')^(1 - c)
//
// No search found it, so its prior width is 0.
std::vector<FittedParameter> kept_shares(const Cluster& base, std::span<const Measurement> tables,
                                         Backend backend,
                                         const std::vector<FittedParameter>& fitted);

// Returns the base description with these keys and values. Comments of the base are lost.
std::string cluster_with_keys(const std::string& base, const std::string& name,
                              std::span<const std::pair<std::string, std::string>> keys);

}  // namespace lambcast::validate
