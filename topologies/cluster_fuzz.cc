// Descriptions of clusters, with their calibration and fabric.
#include "sim/base/fuzz_target.h"
#include "topologies/cluster.h"

FUZZ_TARGET(cluster, text) {
  using namespace lambcast;
  decode_cluster(Table::parse(text, "cluster.toml"), "cluster.toml");
}
