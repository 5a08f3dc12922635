// Fuzzes descriptions of clusters, with their calibration and fabric.
#include "sim/base/fuzz_target.h"
#include "topologies/cluster.h"
#include "topologies/foreign_description.h"

FUZZ_TARGET(cluster, text) {
  using namespace lambcast;
  refuse_foreign_description(text, "cluster.toml");
  decode_cluster(Table::parse(text, "cluster.toml"), "cluster.toml");
}
