// Fuzzes descriptions of sites and the links between them.
#include "sim/base/fuzz_target.h"
#include "topologies/sites/site_group.h"

FUZZ_TARGET(site_group, text) {
  using namespace lambcast;
  decode_sites(Table::parse(text, "sites.toml"));
}
