// Typical values of fabrics whose tables were fitted. They are used for constants of NCCL on a
// network that a description leaves out, and as the prior of a calibration.
//
// A prior is the distribution of a factor f: the value is f times the constant without it, which is
// one of NCCL's own latencies and shares (library_defaults.h) or the rate of a link or NIC. Its
// logarithm is assumed to be normal over fabrics: mean log(typical), standard deviation `spread`.
// RDMA fabrics and TCP sockets have separate priors. The numbers are data, priors.toml, learned
// from the shipped tables by validate/priors/learn_priors.h.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/base/table.h"

namespace lambcast {

enum class NetworkKind { rdma, socket };
// Reads the key `network` of a description's NIC. Names of networks, such as roce, are refused with
// the kind that they are.
NetworkKind decode_network(const Table& nic);

struct Prior {
  double typical = 1;
  double spread = 1;
  int fabrics = 0;  // number of fabrics whose own tables determine it
};

struct Priors {
  struct OfKind {
    int fabrics = 0;  // number of fabrics that the priors were learned from
    std::map<std::string, Prior, std::less<>> of;

    // Returns the typical factor of a key; 1 if there is no prior for it.
    double typical(std::string_view key) const;
    // Returns the spread of a key; `otherwise` if there is no prior for it.
    double spread(std::string_view key, double otherwise) const;
  };
  OfKind rdma, socket;

  const OfKind& on(NetworkKind network) const {
    return network == NetworkKind::rdma ? rdma : socket;
  }
};

// Returns "prior of 16 RDMA fabrics, 9 of which determine it", for provenance.
std::string source_of(const Priors& priors, NetworkKind network, std::string_view key);

Priors decode_priors(const Table& root);
const Priors& shipped_priors();

}  // namespace lambcast
