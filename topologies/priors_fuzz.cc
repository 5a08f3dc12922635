// Fuzzes priors of fabrics, and clusters of both kinds of network with these priors.
#include "sim/base/fuzz_target.h"
#include "topologies/cluster.h"
#include "topologies/priors.h"

FUZZ_TARGET(priors, text) {
  using namespace lambcast;
  const Priors priors = decode_priors(Table::parse(text, "priors.toml"));
  for (const char* name : {"hgx-h100-ndr", "commodity-10gbe"})
    decode_cluster(Table::parse(cluster_text(name), name), name, priors);
}
