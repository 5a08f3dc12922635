#include "topologies/nccl_log.h"

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "topologies/cluster.h"
#include "topologies/foreign_description.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Keys = std::map<std::string, std::string>;

Keys keys_of(const std::string& text) {
  Keys keys;
  for (const auto& [key, value] : read_nccl_log(text).keys) keys[key] = value;
  return keys;
}

const std::string efa = R"(NCCL version 2.19.4+cuda12.2
a1:71:71 [0] NCCL INFO NET/OFI Initializing aws-ofi-nccl 1.8.1-aws
a1:71:71 [0] NCCL INFO NET/OFI Running on p5.48xlarge platform, Setting NCCL_TOPO_FILE environment variable to /opt/x.xml
a1:71:71 [0] NCCL INFO NET/OFI Selected Provider is efa (found 32 nics)
a1:71:71 [0] NCCL INFO Using network AWS Libfabric
a1:71:99 [0] NCCL INFO comm 0x5 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0
a1:71:99 [0] NCCL INFO NCCL_PROTO set by environment to Simple.
a1:71:99 [0] NCCL INFO NCCL_BUFFSIZE set by environment to 8388608.
a1:71:99 [0] NCCL INFO Channel 00/0 : 9[1] -> 0[0] [receive] via NET/AWS Libfabric/0/GDRDMA
a1:71:99 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read
a1:71:99 [0] NCCL INFO Channel 01/0 : 0[0] -> 1[1] via P2P/CUMEM/read
a1:71:99 [0] NCCL INFO 16 coll channels, 0 collnet channels, 16 nvls channels, 16 p2p channels, 2 p2p channels per peer
)";

TEST_CASE("NCCL's log: release, plugin, instance and settings become keys") {
  CHECK(keys_of(efa) == Keys{{"nccl.version", "2.19"},
                             {"nccl.plugin", "aws-ofi-nccl"},
                             {"nccl.plugin_release", "1.8.1"},
                             {"nccl.protocols", "Simple"},
                             {"nic.count", "32"},
                             {"nic.instance", "p5.48xlarge"},
                             {"nic.network", "rdma"}});
  const std::string other = read_nccl_log(efa).other;
  CHECK_THAT(other, Contains("2 x P2P") && Contains("1 x NET/AWS Libfabric with GPUDirect"));
  CHECK_THAT(other, Contains("16 nvls channels") && Contains("16 ranks on 2 nodes"));
  // The keys are valid together on the preset of that instance.
  Overrides overrides;
  for (const auto& [key, value] : read_nccl_log(efa).keys) overrides.emplace_back(key, value);
  const Cluster cluster = load_cluster("aws-p5", overrides);
  CHECK(cluster.nccl.protocols.size() == 1);
  const std::vector<NcclSetting> settings = settings_in_nccl_log(efa);
  REQUIRE(settings.size() == 2);
  CHECK(settings[1].name == "NCCL_BUFFSIZE");
  CHECK(settings[1].value == "8388608");
  CHECK(settings[1].line == 8);
}

TEST_CASE("NCCL's log: NICs of InfiniBand with their rate") {
  const std::string ib = R"(n0:5:5 [0] NCCL INFO NCCL version 2.22.3+cuda12.6
n0:5:6 [0] NCCL INFO NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed=400000 context=0x1 pciPath=/sys ar=1
n0:5:6 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [RO]; OOB eth0:10.0.0.4<0>
n0:5:6 [0] NCCL INFO Using network IBext_v8
n0:5:7 [0] NCCL INFO + NET[50.0] - NET/0 (c2a1/1/50.000000)
n0:5:7 [0] NCCL INFO NCCL_ALGO set by environment to Ring,Tree
)";
  CHECK(keys_of(ib) == Keys{{"nccl.version", "2.22"},
                            {"nccl.plugin", "none"},
                            {"nccl.algorithms", "Ring,Tree"},
                            {"nic.count", "2"},
                            {"nic.link_layer", "infiniband"},
                            {"nic.network", "rdma"},
                            {"nic.nominal", "400Gbit/s"}});
}

TEST_CASE("NCCL's log: sockets, other plugins, and what ranks do not agree on") {
  const std::string socket =
      "h:1:1 [0] NCCL INFO NET/Socket : Using [0]eth0:10.0.0.1<0>\n"
      "h:1:1 [0] NCCL INFO Using network Socket\n"
      "h:1:1 [0] NCCL INFO NET/Socket: Using 2 threads and 8 sockets per "
      "thread\n";
  CHECK(keys_of(socket) == Keys{{"nccl.connections", "16"},
                                {"nccl.plugin", "none"},
                                {"nic.count", "1"},
                                {"nic.network", "socket"}});
  CHECK(keys_of("h:1:1 [0] NCCL INFO NET/FasTrak v1.0.9\n"
                "h:1:1 [0] NCCL INFO Using network FasTrak\n") ==
        Keys{{"nccl.plugin", "tcpxo"}, {"nccl.plugin_release", "1.0.9"}, {"nic.network", "rdma"}});
  CHECK(keys_of("h:1:1 [0] NCCL INFO NET/GPUDirectTCPX ver. 3.1.8.\n"
                "h:1:1 [0] NCCL INFO Using network GPUDirectTCPX_v7\n")["nccl.plugin_release"] ==
        "3.1.8");
  CHECK(keys_of("h:1:1 [0] NCCL INFO NET/OFI Selected Provider is cxi\n")["nccl.plugin"] ==
        "ofi-cxi");
  const NcclLog apart = read_nccl_log(
      "h:1:1 [0] NCCL INFO Using network IB\n"
      "g:1:1 [0] NCCL INFO Using network Socket\n");
  CHECK_THAT(apart.other, Contains("2 values of nic.network"));
  const NcclLog old = read_nccl_log("NCCL version 2.4.7+cuda10.0\nh:1:1 [0] NCCL INFO x\n");
  CHECK(old.keys.empty());
  CHECK_THAT(old.other, Contains("NCCL 2.4.7, older than"));
}

TEST_CASE("NCCL's log is a description that sets keys and is no cluster") {
  const auto stated = foreign_description(efa);
  REQUIRE(stated);
  CHECK(stated->keys.size() == 7);
  CHECK_THROWS_WITH(refuse_foreign_description(efa, "log.txt"),
                    Contains("log.txt: is NCCL's log of NCCL_DEBUG=INFO") &&
                        Contains("--set cluster.nccl.plugin=aws-ofi-nccl"));
}

}  // namespace
}  // namespace lambcast
