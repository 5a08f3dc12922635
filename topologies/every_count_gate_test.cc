// Both network models price each operation of each preset, with both libraries, from no bytes to 10
// GB and from one GPU to a million. Times are finite and do not decrease with more bytes.
//
// CI runs a sample. All combinations:
//   build/topologies/topologies_test "every count: all*"
#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "sim/base/error.h"
#include "topologies/collective_rows.h"

namespace lambcast {
namespace {

constexpr int most_gpus = 1 << 20;
constexpr std::size_t compressed_allreduce = op_count;

// Returns the numbers of GPUs to test: one, two, a node, numbers that fill the last node or leaf
// partly, and the maximum.
std::set<int> counts_of(const Cluster& cluster) {
  const int gpus = cluster.gpus_per_node, leaf = std::max(1, cluster.fabric.nodes_per_leaf) * gpus;
  std::set<int> counts{1, 2, 3, gpus, 2 * gpus + 1, leaf + 1, 1000, most_gpus};
  std::erase_if(counts, [&](int count) { return (count + gpus - 1) / gpus > cluster.max_nodes; });
  return counts;
}

CollectiveQuestion question_of(const Cluster& cluster, std::size_t op, int gpus, bool mpi,
                               bool flow) {
  CollectiveQuestion question;
  question.exchange = op == compressed_allreduce;
  if (!question.exchange) question.setting.op = static_cast<Op>(op);
  question.setting.group = {gpus, std::min(gpus, cluster.gpus_per_node)};
  question.setting.backend = mpi ? Backend::mpi_host : Backend::nccl;
  question.network = flow ? NetworkModel::flow : NetworkModel::analytic;
  question.sizes = {0, 1, 1e6, 1e10};
  return question;
}

void check_rows(const std::vector<CollectiveRow>& rows) {
  Duration before, before_by_flow;
  for (const CollectiveRow& row : rows) {
    INFO(row.size << " B by " << row.algorithm << ": " << row.interval.low.us() << " "
                  << row.time.us() << " " << row.interval.high.us() << " us");
    CHECK(row.time >= before);
    CHECK(row.flow_time >= before_by_flow);
    CHECK(row.interval.low >= Duration());
    CHECK(row.interval.low <= row.time);
    CHECK(row.interval.high >= row.time);
    CHECK(std::isfinite(row.algbw_GBps()));
    before = row.time;
    before_by_flow = row.flow_time;
  }
}

// Prices every `stride`-th combination; returns how many were priced.
int ask_every(int stride) {
  int at = 0, asked = 0;
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    for (const int gpus : counts_of(cluster))
      for (std::size_t op = 0; op <= compressed_allreduce; ++op)
        for (const auto& [mpi, flow] :
             {std::pair{false, false}, {false, true}, {true, false}, {true, true}}) {
          if (at++ % stride != 0) continue;
          const bool exchange = op == compressed_allreduce;
          INFO(fmt::format("{} on {} GPUs of {}{}{}",
                           exchange ? "compressed_allreduce" : name_of(static_cast<Op>(op)), gpus,
                           name, mpi ? ", mpi" : "", flow ? ", flow" : ""));
          try {
            check_rows(forecast_rows(cluster, question_of(cluster, op, gpus, mpi, flow)));
            ++asked;
          } catch (const Error& error) {
            FAIL_CHECK(error.what());
          }
        }
  }
  return asked;
}

TEST_CASE("every count: a sample of presets, operations and numbers of GPUs") {
  CHECK(ask_every(7) > 1200);
}

TEST_CASE("every count: all presets, operations and numbers of GPUs", "[.long]") {
  CHECK(ask_every(1) > 8500);
}

}  // namespace
}  // namespace lambcast
