#include "topologies/collective_rows.h"

#include <catch2/catch.hpp>

#include "sim/base/error.h"

namespace lambcast {
namespace {

CollectiveQuestion question_of(Op op, int ranks, std::vector<double> sizes) {
  CollectiveQuestion question;
  question.setting.op = op;
  question.setting.group.ranks = ranks;
  question.setting.group.per_node = 4;
  question.sizes = std::move(sizes);
  return question;
}

TEST_CASE("collective rows: a row is the forecast of its size, with its interval") {
  const Cluster cluster = load_cluster("paper-eth40-v100", {});
  const CollectiveQuestion question = question_of(Op::all_reduce, 16, {1024, 1e8});
  const auto rows = forecast_rows(cluster, question);
  REQUIRE(rows.size() == 2);
  CollectiveSeries series = prepare(cluster, question.setting);
  for (const CollectiveRow& row : rows) {
    const Collective collective = forecast(series, Bytes(row.size));
    CHECK(row.time == collective.time);
    CHECK(row.algorithm == collective.algorithm);
    CHECK(row.interval.low < row.time);
    CHECK(row.interval.high > row.time);
    CHECK(row.algbw_GBps() == Approx(row.size / row.time.s() / 1e9));
  }
}

TEST_CASE("collective rows: an exchange adds up its messages and names each algorithm once") {
  const Cluster cluster = load_cluster("commodity-10gbe", {});
  CollectiveQuestion question = question_of(Op::all_reduce, 16, {1 << 20});
  question.setting.backend = Backend::mpi_host;
  question.exchange = true;
  const CollectiveRow row = forecast_rows(cluster, question).front();
  Duration sum, low;
  CollectiveSeries series = prepare(cluster, question.setting);
  for (const Collective& part : compressed_exchange(series, Backend::mpi_host, Bytes(1 << 20))) {
    sum += part.time;
    low +=
        interval_of(cluster, Backend::mpi_host, part.op, part.size, question.setting.group,
                    part.time, {part.chosen, part.protocol, {}, part.traffic.network_sent_per_node})
            .low;
  }
  CHECK(row.time == sum);
  CHECK(row.interval.low == low);
  CHECK(row.algorithm == "deepspeed_gather+recursive_doubling");
  question.setting.algorithm = "ring";
  CHECK_THROWS_WITH(forecast_rows(cluster, question),
                    Catch::Contains("--algorithm: is not for compressed_allreduce"));
}

TEST_CASE("collective rows: a row has the times of the flow model and of the closed form") {
  const Cluster tree = load_cluster("hgx-h100-ndr", {{"fabric.kind", "fat-tree"},
                                                     {"fabric.nodes_per_leaf", "4"},
                                                     {"fabric.oversubscription", "4.0"}});
  CollectiveQuestion question = question_of(Op::all_to_all, 128, {1 << 26});
  question.setting.group.per_node = 8;
  question.setting.algorithm = "linear";
  const CollectiveRow analytic = forecast_rows(tree, question).front();
  question.network = NetworkModel::flow;
  const CollectiveRow flow = forecast_rows(tree, question).front();
  CHECK(flow.time == flow.flow_time);
  CHECK(analytic.flow_time.us() == Approx(flow.time.us()).epsilon(1e-6));
  CHECK_FALSE(flow.models_part());
}

// A ring of MPI over eight NICs: each step, a rank sends its block over its link to host memory of
// 5 GB/s, 7/8 of it to the next rank of the node and 1/8 through a NIC. The last step of 63 ends
// after 63 x 4 MiB / 5 GB/s.
TEST_CASE("collective rows: rings that share a link with sends out of the node divide it evenly") {
  const Cluster cluster = load_cluster("gcp-a3-mega", {{"mpi.message_overhead", "0 us"},
                                                       {"mpi.mpi.base", "0 us"},
                                                       {"mpi.mpi.local_hop", "0 us"},
                                                       {"mpi.mpi.network_hop", "0 us"}});
  CollectiveQuestion question = question_of(Op::all_gather, 64, {1 << 28});
  question.setting.group.per_node = 8;
  question.setting.backend = Backend::mpi_host;
  question.setting.algorithm = "ring";
  const CollectiveRow row = forecast_rows(cluster, question).front();
  CHECK(row.time.s() == Approx(63 * 4194304 / 5e9).epsilon(1e-3));
  CHECK_FALSE(row.models_part());
}

TEST_CASE(
    "collective rows: a million ranks on full leaves, and an error for collectives that do not "
    "fold") {
  const auto of_leaves = [](const char* nodes) {
    return load_cluster("hgx-h100-ndr", {{"fabric.kind", "fat-tree"},
                                         {"fabric.nodes_per_leaf", nodes},
                                         {"fabric.oversubscription", "4.0"}});
  };
  CollectiveQuestion question = question_of(Op::all_reduce, 1 << 20, {1 << 30});
  question.setting.group.per_node = 8;
  CHECK(forecast_rows(of_leaves("4"), question).front().algorithm == "nvls_tree");
  for (const char* algorithm : {"tree", "nvls_tree", "ring"}) {
    question.setting.algorithm = algorithm;
    CHECK(forecast_rows(of_leaves("4"), question).front().algorithm == algorithm);
  }
  // Leaves of 331 nodes, no power of two, so that the trees have different positions in each leaf.
  question.setting.algorithm = "tree";
  question.setting.group.ranks = 8 * 331 * 300;
  const CollectiveRow row = forecast_rows(of_leaves("331"), question).front();
  CHECK(row.algorithm == "tree");
  REQUIRE(row.tip.approximation);
  CHECK(row.tip.approximation->low < 1);
  CHECK(row.tip.approximation->high > 1);
  // 794,400 ranks are halved until at most 16,384 are left: 12,412. The second group has half of
  // them.
  CHECK(row.tip.approximation->ranks == std::array{6206, 12412});
  question.setting.expand = true;
  CHECK_THROWS_WITH(forecast_rows(of_leaves("331"), question),
                    Catch::Contains("all_reduce over 794400 ranks: too many ranks to simulate one "
                                    "by one (allowed: up to 65536"));
}

TEST_CASE("collective rows: sizes grow by the factor and are whole bytes") {
  CHECK(sizes_between(8, 64, 2) == std::vector<double>{8, 16, 32, 64});
  CHECK(sizes_between(10, 30, 1.5) == std::vector<double>{10, 15, 22});
  CHECK(sizes_between(8, 8, 1) == std::vector<double>{8});
  CHECK_THROWS_WITH(sizes_between(8, 4, 2), Catch::Contains("-e: is below -b"));
  CHECK_THROWS_WITH(sizes_between(8, 16, 1), Catch::Contains("-f: must be above 1"));
  CHECK_THROWS_WITH(sizes_between(8, 1e15, 1.0001), Catch::Contains("more than 10000 sizes"));
}

}  // namespace
}  // namespace lambcast
