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
  for (const Collective& part : compressed_exchange(cluster, question.setting, Bytes(1 << 20))) {
    sum += part.time;
    low += interval_of(cluster, Backend::mpi_host, part.op, part.size, question.setting.group,
                       part.time)
               .low;
  }
  CHECK(row.time == sum);
  CHECK(row.interval.low == low);
  CHECK(row.algorithm == "deepspeed_gather+recursive_doubling");
  question.setting.algorithm = "ring";
  CHECK_THROWS_WITH(forecast_rows(cluster, question),
                    Catch::Contains("--algorithm: is not for compressed_allreduce"));
}

TEST_CASE("collective rows: what the flow model says stands beside the closed form") {
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

TEST_CASE("collective rows: what is too large names the algorithm and those that are not") {
  const Cluster tree = load_cluster("hgx-h100-ndr", {{"fabric.kind", "fat-tree"},
                                                     {"fabric.nodes_per_leaf", "4"},
                                                     {"fabric.oversubscription", "4.0"}});
  CollectiveQuestion question = question_of(Op::all_reduce, 1 << 20, {1 << 30});
  question.setting.group.per_node = 8;
  CHECK_THROWS_WITH(forecast_rows(tree, question),
                    Catch::Contains("an all_reduce over 1048576 ranks that are not alike under "
                                    "nvls_tree is too large to write out: up to 65536 ranks, or an "
                                    "algorithm under which they are: ring"));
  for (const char* algorithm : {"tree", "nvls_tree"}) {
    question.setting.algorithm = algorithm;
    CHECK_THROWS_WITH(forecast_rows(tree, question),
                      Catch::EndsWith(std::string(". In ") + algorithm +
                                      " nodes play different parts, so that no leaf switch of "
                                      "nodes stands for the others"));
  }
  question.setting.algorithm = "ring";
  CHECK(forecast_rows(tree, question).front().algorithm == "ring");
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
