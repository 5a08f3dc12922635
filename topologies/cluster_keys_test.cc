#include <catch2/catch.hpp>

#include <map>

#include "sim/base/asked_keys.h"
#include "sim/base/error.h"
#include "topologies/cluster.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

constexpr const char* all_there =
    "name = 'x'\ndevice = 'h100'\n[node]\ngpus = 8\ngpu_peers = 'pcie'\ngpu_link = '20 GB/s'\n"
    "[nic]\ncount = 1\nnetwork = 'rdma'\nnominal = '100 Gbit/s'\nbandwidth = '90 Gbit/s'\n";

std::string refusal_of(const std::string& text) {
  try {
    decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
    return {};
  } catch (const Error& error) {
    return error.what();
  }
}

TEST_CASE("required keys: an error names all missing keys, and no other key is required") {
  CHECK(refusal_of(all_there).empty());
  const std::string none = refusal_of("description = 'x'\n");
  for (const char* key : {"name", "device", "node.gpus", "node.gpu_peers", "node.gpu_link",
                          "node.gpu_nic (if gpu_peers is nvlink or nvlink-mesh)", "nic.count",
                          "nic.network", "nic.nominal", "nic.bandwidth"})
    CHECK_THAT(none, Contains(key));
  CHECK_THAT(none, !Contains("fabric"));
  CHECK_THAT(none, Contains("mine.toml") && Contains("10 keys are missing"));
}

TEST_CASE("required keys: a network is one of two kinds, and names of networks say which") {
  const auto with_network = [](const std::string& word) {
    std::string text = all_there;
    text.replace(text.find("rdma"), 4, word);
    return refusal_of(text);
  };
  CHECK(with_network("socket").empty());
  CHECK_THAT(with_network("roce"), Contains("networks of this type are \"rdma\""));
  CHECK_THAT(with_network("tcp"), Contains("networks of this type are \"socket\""));
  CHECK_THAT(with_network("rdmaa"), Contains("did you mean 'rdma'?"));
}

// Each line of the full description is needed: without it, an error names the missing key at once,
// so no reader reports a further key later.
TEST_CASE("required keys: the list matches the keys that the description's readers require") {
  const std::string text = all_there;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string line = text.substr(begin, end - begin);
    if (!line.starts_with('[')) {
      std::string less = text;
      less.erase(begin, line.size());
      INFO(line);
      CHECK_THAT(refusal_of(less), Contains("missing"));
      // If `name` is missing too, the error names both keys. Without `gpu_peers`, `gpu_nic` is
      // missing as well.
      const char* const expected =
          line.starts_with("gpu_peers") ? "3 keys are missing: name" : "2 keys are missing: name";
      if (!line.starts_with("name"))
        CHECK_THAT(refusal_of(less.substr(less.find('\n') + 1)), Contains(expected));
    }
    begin = end;
  }
}

TEST_CASE("required keys: a key whose condition does not hold names the condition") {
  std::string text = all_there;
  text.replace(text.find("gpu_link"), 0, "gpu_nic = '9 GB/s'\n");
  CHECK_THAT(refusal_of(text),
             Contains("gpu_nic: applies only if gpu_peers is nvlink or nvlink-mesh"));
}

TEST_CASE("required keys: the keys of a fabric depend on its kind") {
  const auto missing = [](const std::string& kind) {
    return refusal_of(std::string(all_there).substr(11) + "[fabric]\nkind = '" + kind + "'\n");
  };
  CHECK_THAT(missing("torus"), Contains("name, fabric.dimensions"));
  CHECK_THAT(missing("dragonfly"),
             Contains("name, fabric.nodes_per_leaf, fabric.routers_per_group"));
  CHECK_THAT(missing("single-switch"), Contains("name: is missing"));
}

// Some sections are read before overrides are applied, for their evidence. Their unknown keys are
// refused all the same.
TEST_CASE("cluster: an unknown key of a section is refused next to any other override") {
  const Overrides others{{"nic.bandwidth", "20 Gbit/s"},
                         {"nic.nominal", "400 Gbit/s"},
                         {"node.gpu_link", "10 GB/s"},
                         {"node.gpus", "4"},
                         {"nic.count", "2"},
                         {"nccl.nic_efficiency", "0.5"},
                         {"stack.compute_scale", "1.1"},
                         {"nic.burst", "1 MB"}};
  for (const char* section :
       {"", "nic.", "node.", "fabric.", "nccl.", "mpi.", "stack.", "host_copy."})
    for (const auto& other : others)
      for (const bool first : {true, false}) {
        const std::pair<std::string, std::string> unknown{section + std::string("bananas"), "1"};
        INFO(unknown.first << " next to " << other.first);
        CHECK_THROWS_WITH(load_cluster("commodity-10gbe", first ? Overrides{unknown, other}
                                                                : Overrides{other, unknown}),
                          Contains("bananas"));
      }
}

// If a key is given without its section, the error suggests the key with its section.
TEST_CASE("misplaced keys: a description names the keys that end with the word") {
  const std::map<std::string, std::string> keys = [] {
    const AskedKeys asked;
    load_cluster("commodity-10gbe", {});
    return asked.keys();
  }();
  int tried = 0;
  for (const auto& [key, type] : keys) {
    const std::string word = key.substr(key.rfind('.') + 1);
    // Keys of priors are left out, since priors are read from another file.
    const bool is_prior = key.starts_with("rdma.") || key.starts_with("socket.");
    if (word == key || is_prior || key.find('[') != std::string::npos || keys.contains(word))
      continue;
    INFO(key);
    CHECK_THROWS_WITH(
        load_cluster("commodity-10gbe", {{word, "1"}}),
        Contains("unknown key '" + word + "', did you mean") && Contains("'cluster." + key + "'"));
    ++tried;
  }
  CHECK(tried > 30);
  CHECK_THROWS_WITH(load_cluster("commodity-10gbe", {{"bandwith", "1"}}),
                    Contains("did you mean 'cluster.nic.bandwidth'?"));
  CHECK_THAT(refusal_of("bandwidth = '1 Gbit/s'\n" + std::string(all_there)),
             Contains("mine.toml:1: bandwidth: unknown key 'bandwidth', did you mean "
                      "'nic.bandwidth'?"));
}

}  // namespace
}  // namespace lambcast
