#include "topologies/foreign_description.h"

#include <catch2/catch.hpp>

#include "sim/base/error.h"
#include "topologies/host_list.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::string foreign_refusal(const std::string& text) {
  try {
    refuse_foreign_description(text, "f");
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    return error.what();
  }
  return "";
}

TEST_CASE("foreign descriptions: hosts of Slurm's lists") {
  CHECK(hosts_in("n1") == 1);
  CHECK(host_names("n[08-10],a[1-2]x[0,3],m") ==
        std::vector<std::string>{"n08", "n09", "n10", "a1x0", "a2x0", "a1x3", "a2x3", "m"});
  CHECK_FALSE(host_names("n[1-200000]"));
  CHECK_FALSE(host_names("no/such"));
  CHECK(hosts_in("n[01-03,7],gpu[1-2]x[0-3],login1") == 4 + 2 * 4 + 1);
  for (const char* none : {"", "n1,", "n[1-", "n[3-1]", "n[a-b]", "ALL", "n[0-99999999]"})
    CHECK_FALSE(hosts_in(none));
}

TEST_CASE("foreign descriptions: NCCL's topology gives GPUs, links and NICs") {
  const std::string gpu =
      R"(<pci busid="0"><gpu dev="0" sm="90" rank="R"><nvlink target="1" count="18" tclass="0x068000"/></gpu></pci>)";
  const auto ranked = [&](const char* rank) {
    return std::string(gpu).replace(gpu.find('R'), 1, rank);
  };
  const std::string text =
      R"(<system version="1"><cpu>)" + ranked("0") + ranked("1") + ranked("-1") +
      R"(<nic><net name="mlx5_0" dev="0" speed="400000"/></nic></cpu></system>)";
  CHECK(foreign_refusal(text) ==
        "f: is NCCL's topology of one node, which has no measured rate; it leaves open all between "
        "nodes (allowed: a preset of the same hardware with --topology f, which is --set "
        "cluster.node.gpus=2 --set "
        "cluster.node.gpu_peers=nvlink --set cluster.nic.count=1 --set "
        "cluster.nic.nominal=400Gbit/s)");
  std::string unknown = text;
  unknown.replace(unknown.find("400000"), 6, "0");
  CHECK_THAT(foreign_refusal(unknown), !Contains("nominal"));
  CHECK_THAT(foreign_refusal("<graphs version=\"1\">"), Contains("NCCL's graph of channels"));
}

TEST_CASE("foreign descriptions: files of clouds and of AMD leave links open") {
  // The file for NCCL_TOPO_FILE of a virtual machine has only PCIe functions.
  const std::string functions =
      R"(<system version="1"><cpu><pci busid="0" class="0x060400"><pci busid="1" class="0x030200"/>
         <pci busid="2" class="0x020700"/><pci busid="3" class="0x030200"/></pci></cpu></system>)";
  CHECK_THAT(foreign_refusal(functions),
             Contains("leaves open the links among its GPUs, all between nodes") &&
                 Contains("--set cluster.node.gpus=2 --set cluster.nic.count=1)"));
  const std::string amd =
      R"(<system version="2"><pci busid="1" class="0x038000"><gpu dev="0" rank="0">
         <xgmi target="2" count="1" tclass="0x038000"/></gpu></pci></system>)";
  CHECK_THAT(foreign_refusal(amd), Contains("the links among its GPUs") &&
                                       Contains("node.gpus=1") && !Contains("gpu_peers"));
}

TEST_CASE("foreign descriptions: the matrix of nvidia-smi gives GPUs and NICs") {
  const std::string matrix =
      "\t\x1b[4mGPU0\tGPU1\tGPU2\tNIC0\tCPU Affinity\x1b[0m\n"
      "GPU0\t X \tNV18\tNV18\tPIX\t0-55\nGPU1\tNV18\t X \tNV18\tSYS\t0-55\n"
      "GPU2\tNV18\tNV18\t X \tSYS\t0-55\nNIC0\tPIX\tSYS\tSYS\t X \t\n\nLegend:\n  X    = Self\n";
  CHECK_THAT(foreign_refusal(matrix),
             Contains("--set cluster.node.gpus=3 --set "
                      "cluster.node.gpu_peers=nvlink --set cluster.nic.count=1)"));
  std::string mesh = matrix;
  mesh.replace(mesh.find("NV18"), 4, "NV2");
  CHECK_THAT(foreign_refusal(mesh), Contains("whether NVLink goes through switches"));
}

TEST_CASE("foreign descriptions: NICs of training are the fastest, and those near GPUs") {
  CHECK_THAT(foreign_refusal(R"(<system version="1"><gpu dev="0" rank="0"/><net speed="400000"/>
                               <net speed="400000"/><net speed="100000"/></system>)"),
             Contains("nic.count=2 --set cluster.nic.nominal=400Gbit/s") &&
                 Contains("what its 1 slower NICs carry"));
  CHECK_THAT(foreign_refusal("$ nvidia-smi topo -m\n\tGPU0\tGPU1\tNIC0\tNIC1\tCPU Affinity\n"
                             "GPU0\t X \tNV18\tPXB\tSYS\t0\nGPU1\tNV18\t X \tPXB\tSYS\t0\n"
                             "NIC0\tPXB\tPXB\t X \tSYS\nNIC1\tSYS\tSYS\tSYS\t X \n"),
             Contains("nic.count=1") && Contains("what its 1 NICs far from GPUs carry"));
  CHECK_THAT(
      foreign_refusal(R"(<system version="2"><gpu dev="0" gcn="gfx942" rank="0"/></system>)"),
      Contains("the rates of its GPUs (gfx942 of AMD)"));
}

TEST_CASE("foreign descriptions: outputs of other tools are named") {
  CHECK_THAT(
      foreign_refusal("==== ROCm System Management Interface ====\n  GPU0  GPU1\nGPU0 0 15\n"),
      Contains("is the output of rocm-smi"));
  CHECK_THAT(foreign_refusal("vendid=0x2c9\nswitchguid=0x2c9(2c9)\n"), Contains("ibnetdiscover"));
  CHECK_THAT(foreign_refusal("n1 slots=8\nn2 slots=8\n"), Contains("is a list of hosts"));
  CHECK_THAT(foreign_refusal("ClusterName=x\nPartitionName=gpu Nodes=n1\n"),
             Contains("slurm.conf"));
  CHECK_THAT(foreign_refusal("<?xml version=\"1.0\"?>\n<topology version=\"2.0\">"),
             Contains("hwloc"));
}

TEST_CASE("foreign descriptions: Slurm's switches give a fabric") {
  const std::string conf =
      "# leaves\nswitchname=s0 Nodes=dev[0-5]\nSwitchName=s1 Nodes=dev[6-10]\n"
      "SwitchName=s2 Switches=s[0-1] LinkSpeed=9\n";
  CHECK_THAT(
      foreign_refusal(conf),
      Contains("is Slurm's topology.conf") && Contains("(fabric.oversubscription)") &&
          Contains("--set cluster.fabric.kind=fat-tree --set cluster.fabric.nodes_per_leaf=6)"));
  CHECK_THAT(foreign_refusal("SwitchName=s0 Nodes=n[1-8]\n"),
             Contains("fabric.kind=single-switch"));
  CHECK_THAT(foreign_refusal("SwitchName=s0 Nodes=ALL\n"), Contains("leaves open the hosts"));
  CHECK_THAT(
      foreign_refusal("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=c Nodes=n[3-5]\n"),
      Contains("different numbers of nodes"));
  CHECK_THAT(foreign_refusal("BlockName=b1 Nodes=n[1-4]\n"), Contains("blocks or rings"));
  CHECK_THAT(
      foreign_refusal("---\n- topology: t1\n  tree:\n    switches:\n      - switch: s0\n"
                      "        nodes: n[1-4]\n      - switch: s1\n        nodes: \"n[5-8]\"\n"
                      "      - switch: s2\n        children: s[0-1]\n"),
      Contains("is Slurm's topology.yaml") && Contains("nodes_per_leaf=4)"));
}

TEST_CASE("foreign descriptions: a description of our own is not one") {
  for (const char* text :
       {"", "\n", "name = \"x\"\n[node]\ngpus = 8\n", "# SwitchName=s0\nname = 3\n"})
    CHECK(foreign_refusal(text).empty());
}

TEST_CASE("foreign descriptions: several sites are not a cluster") {
  CHECK_THAT(foreign_refusal("name = \"x\"\n[[site]]\nname = \"a\"\n"),
             Contains("several sites") && Contains("lambcast sites --cluster f"));
}

}  // namespace
}  // namespace lambcast
