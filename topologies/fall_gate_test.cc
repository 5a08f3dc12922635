// Gate over the shipped presets: if a collective of twice the size is more than 10 % faster, its
// forecast names what the library runs at twice the size.
#include <catch2/catch.hpp>

#include "topologies/collective_rows.h"

namespace lambcast {
namespace {

struct Falls {
  int all = 0, unnamed = 0;
};

// Adds the falls of one collective over its sizes.
void add_falls(Falls& falls, const Cluster& cluster, const CollectiveQuestion& question) {
  const std::vector<CollectiveRow> rows = forecast_rows(cluster, question);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].time >= rows[i - 1].time.scaled(0.9)) continue;
    ++falls.all;
    if (rows[i - 1].tip.twice) continue;
    ++falls.unnamed;
    UNSCOPED_INFO(
        cluster.name << ": "
                     << (question.exchange ? "compressed_allreduce" : name_of(question.setting.op))
                     << " of " << rows[i - 1].size << " B over " << question.setting.group.ranks
                     << " ranks, " << rows[i - 1].time.us() << " us, then " << rows[i].time.us());
  }
}

Falls falls_on(const std::string& name, const std::vector<int>& node_counts, Backend backend,
               NetworkModel network, double largest) {
  const Cluster cluster = load_cluster(name, {});
  Falls falls;
  for (std::size_t op = 0; op <= op_count; ++op)
    for (const int nodes : node_counts) {
      CollectiveQuestion question;
      question.exchange = op == op_count;
      if (!question.exchange) question.setting.op = static_cast<Op>(op);
      question.setting.group = {nodes * cluster.gpus_per_node, cluster.gpus_per_node};
      question.setting.backend = backend;
      question.network = network;
      question.sizes = sizes_between(1024, largest, 2);
      if (question.setting.group.ranks > 1 && nodes <= cluster.max_nodes)
        add_falls(falls, cluster, question);
    }
  return falls;
}

// Among the falls are NCCL's rule on two nodes of GH200 over TCP, Open MPI's rules on 16 and 64
// ranks, chunks in the NVLink switch, and channels of a ring of 72 ranks.
TEST_CASE("falls: a message that is slower than one of twice the size names the switch") {
  int all = 0;
  for (const std::string& name : cluster_names())
    for (const Backend backend : {Backend::nccl, Backend::mpi_host})
      for (const NetworkModel network : {NetworkModel::analytic, NetworkModel::flow}) {
        const bool flow = network == NetworkModel::flow;
        const std::vector<int> nodes = flow ? std::vector{1, 2, 4} : std::vector{1, 2, 4, 16};
        const Falls falls = falls_on(name, nodes, backend, network, 4e9);
        CHECK(falls.unnamed == 0);
        all += falls.all;
      }
  CHECK(all > 50);
}

}  // namespace
}  // namespace lambcast
