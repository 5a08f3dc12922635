// What is typical of fabrics whose tables were fitted: used where a description says nothing of
// what NCCL makes of its network, and as the prior of a calibration.
//
// A prior is of a factor f: the value is f times the constant that stands without it, NCCL's own
// latencies and shares (library_defaults.h) or the rate of a link or NIC. Its logarithm is taken to
// be normal over fabrics: mean log(typical), standard deviation `spread`. RDMA fabrics and TCP
// sockets have priors of their own. The numbers are data, priors.toml, learned from the tables that
// ship by validate/priors/learn_priors.h.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "sim/base/table.h"

namespace lambcast {

enum class NetworkKind { rdma, socket };

struct Prior {
  double typical = 1;
  double spread = 1;
  int fabrics = 0;  // whose own tables determine it; the others follow
};

struct Priors {
  struct OfKind {
    int fabrics = 0;  // they were learned from, all together
    std::map<std::string, Prior, std::less<>> of;

    // Nothing known: a factor of 1.
    double typical(std::string_view key) const;
    // `otherwise` where nothing is known.
    double spread(std::string_view key, double otherwise) const;
  };
  OfKind rdma, socket;

  const OfKind& on(NetworkKind network) const {
    return network == NetworkKind::rdma ? rdma : socket;
  }
};

// "prior of 16 RDMA fabrics, 9 of which determine it", for provenance.
std::string source_of(const Priors& priors, NetworkKind network, std::string_view key);

Priors decode_priors(const Table& root);
const Priors& shipped_priors();

}  // namespace lambcast
