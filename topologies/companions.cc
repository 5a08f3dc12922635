#include "topologies/companions.h"

#include <algorithm>
#include <string>

namespace lambcast {
namespace {

using Latency = Sourced<Duration> ProtocolSpec::*;
using Alone = std::optional<Sourced<Duration>> ProtocolSpec::*;

struct Companions {
  const char* key;
  Latency stated, of_trees;
  Alone alone;  // null if there is no such value
};

constexpr Companions all_companions[] = {
    {"base", &ProtocolSpec::base, &ProtocolSpec::tree_base, &ProtocolSpec::alone_base},
    {"local_hop", &ProtocolSpec::local_hop, &ProtocolSpec::tree_local_hop,
     &ProtocolSpec::alone_local_hop},
    {"network_hop", &ProtocolSpec::network_hop, &ProtocolSpec::tree_network_hop, nullptr}};

void keep(const std::string& library, const ProtocolSpec& before, const Overrides& overrides,
          ProtocolSpec& after) {
  const auto sets = [&](const std::string& key) {
    return std::ranges::find(overrides, library + "." + before.name + "." + key,
                             &Overrides::value_type::first) != overrides.end();
  };
  for (const auto& [key, stated, of_trees, alone] : all_companions) {
    if (!sets(key)) continue;
    const Duration was = (before.*stated).value;
    if (!sets(std::string("tree_") + key) && was > Duration())
      (after.*of_trees).value = (before.*of_trees).value.scaled((after.*stated).value / was);
    if (alone != nullptr && !sets(std::string("alone_") + key)) after.*alone = before.*alone;
  }
}

void keep(const std::string& name, const LibrarySpec& before, const Overrides& overrides,
          LibrarySpec& after) {
  for (ProtocolSpec& protocol : after.protocols)
    if (const auto was = std::ranges::find(before.protocols, protocol.name, &ProtocolSpec::name);
        was != before.protocols.end())
      keep(name, *was, overrides, protocol);
}

}  // namespace

void keep_companions(const Cluster& before, const Overrides& overrides, Cluster& after) {
  keep("nccl", before.nccl, overrides, after.nccl);
  keep("mpi", before.mpi, overrides, after.mpi);
}

}  // namespace lambcast
