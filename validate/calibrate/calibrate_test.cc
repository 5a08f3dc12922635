#include "validate/calibrate/calibrate.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <ctime>

#include "sim/base/error.h"
#include "validate/calibrate/made_up_machine.h"

namespace lambcast::validate {
namespace {

using Catch::Matchers::Contains;

const char* const base = made_up_base;

const FittedParameter& found(const FitSummary& summary, const std::string& key) {
  for (const FittedParameter& parameter : summary.parameters)
    if (parameter.of.key == key) return parameter;
  FAIL("no parameter " << key);
  return summary.parameters.front();
}

bool has(const FitSummary& summary, const std::string& key) {
  return std::any_of(summary.parameters.begin(), summary.parameters.end(),
                     [&](const auto& parameter) { return parameter.of.key == key; });
}

TEST_CASE("calibrate: parameters that the tables determine are recovered") {
  const FitSummary summary = calibrate(base, "base.toml", all_tables(0, 1));
  for (const Truth& truth : truths) {
    INFO(truth.key);
    CHECK(found(summary, truth.key).identified);
    CHECK(found(summary, truth.key).value == Approx(truth.value).epsilon(0.03));
  }
  for (const BandError& band : summary.held_out) CHECK(band.median < 0.01);
  CHECK(summary.tables == 24);
  CHECK_FALSE(summary.held_out_table.empty());
}

TEST_CASE("calibrate: sixteen times the rows of a table cost little more") {
  const auto seconds = [](int finer) {
    Measurement table = made_up(Operation::all_reduce, 2, 4, 0.02, 1);
    for (int i = 1; i < finer; ++i)
      for (const Row& row : made_up(Operation::all_reduce, 2, 4, 0.02, 1,
                                    1024 * std::exp2(static_cast<double>(i) / finer))
                                .rows)
        table.rows.push_back(row);
    std::sort(table.rows.begin(), table.rows.end(),
              [](const Row& a, const Row& b) { return a.size < b.size; });
    const std::clock_t began = std::clock();
    CHECK(calibrate(base, "base.toml", {{table}}).rows == static_cast<int>(table.rows.size()));
    return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC;
  };
  const double few = seconds(1), many = seconds(16);
  INFO(few << " s and " << many << " s of CPU");
  CHECK(many < 8 * few + 0.2);
}

TEST_CASE("calibrate: intervals hold the truth, and forecasts the measurements") {
  int inside = 0, all = 0;
  for (const unsigned seed : {100u, 200u, 300u}) {
    const FitSummary summary = calibrate(base, "base.toml", all_tables(0.05, seed));
    for (const Truth& truth : truths) {
      const FittedParameter& parameter = found(summary, truth.key);
      if (!parameter.identified) continue;
      ++all;
      if (parameter.low <= truth.value && truth.value <= parameter.high) ++inside;
    }
    // With normal noise of 5 %, half of all rows are off by less than 0.674 times 5 %, nine in ten
    // by less than 1.645 times 5 %.
    for (const BandError& band : summary.fitted) {
      CHECK(band.median == Approx(0.674 * 0.05).epsilon(0.35));
      CHECK(band.p90 == Approx(1.645 * 0.05).epsilon(0.35));
    }
  }
  CHECK(all >= 20);
  // Among 24 intervals of 95 %, fewer than 19 hold the true value with a probability of one in a
  // thousand.
  CHECK(inside >= all - 5);
}

// Six tables of a machine so busy that its times scatter by 30 %.
TEST_CASE("calibrate: a parameter known only to a factor of two is not identified") {
  std::vector<Measurement> tables = all_tables(0.3, 2);
  tables.resize(6);
  int known = 0, unknown = 0;
  for (const FittedParameter& parameter : calibrate(base, "base.toml", tables).parameters) {
    INFO(parameter.of.key << " from " << parameter.low << " to " << parameter.high);
    ++(parameter.identified ? known : unknown);
    if (parameter.identified) CHECK(parameter.high / parameter.low < 2 * 2);
  }
  CHECK(known > 0);
  CHECK(unknown > 0);
}

TEST_CASE("calibrate: outliers do not move the fit") {
  std::vector<Measurement> tables = all_tables(0, 1);
  for (Measurement& table : tables) table.rows[3].time = table.rows[3].time * 10;
  const FitSummary summary = calibrate(base, "base.toml", tables);
  CHECK(found(summary, "nccl.nic_efficiency").value == Approx(0.8).epsilon(0.03));
  CHECK(found(summary, "nccl.Simple.network_hop").value == Approx(22).epsilon(0.1));
}

TEST_CASE(
    "calibrate: parameters that the tables do not exercise are left alone or called "
    "unidentified") {
  // An all_gather on one node uses no network and no trees, so their parameters are not fitted.
  const FitSummary one_node =
      calibrate(base, "base.toml", std::vector{made_up(Operation::all_gather, 1, 4, 0, 1)});
  CHECK(has(one_node, "nccl.Simple.alone_base"));
  for (const char* key : {"nccl.nic_efficiency", "nccl.Simple.network_hop", "nccl.tree_efficiency"})
    CHECK_FALSE(has(one_node, key));
  // A single size cannot separate latency from bandwidth.
  const std::vector one_size{made_up(Operation::all_reduce, 2, 4, 0, 1, 1 << 20, 1 << 20)};
  const FitSummary summary = calibrate(base, "base.toml", one_size);
  CHECK(summary.rows == 1);
  CHECK(summary.held_out.empty());
  CHECK(std::none_of(summary.parameters.begin(), summary.parameters.end(),
                     [](const auto& parameter) { return parameter.identified; }));
  CHECK(summary.fitted.front().median < 0.02);
  const std::string report = brief_report(summary);
  CHECK_THAT(report, Contains("not identified"));
  CHECK_THAT(report, Contains("nccl.nic_efficiency") && Contains("1 rows of 1 tables"));
  // The written file can be read. One row is too few to narrow the interval: its half-width stays
  // at log 0.8, as without a table.
  const std::string text = calibrated_cluster(base, "base.toml", "mine", summary, "one row");
  const Cluster cluster = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  CHECK(cluster.calibration.value().bands.back().high == Approx(std::exp(0.8)).epsilon(0.01));
}

TEST_CASE("calibrate: the written file has the fitted values, and the ranges of the tables") {
  const FitSummary summary = calibrate(base, "base.toml", all_tables(0.05, 7));
  const std::string text =
      calibrated_cluster(base, "base.toml", "mine", summary, "three \"good\" nights");
  const Cluster cluster = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  CHECK(cluster.name == "mine");
  CHECK(cluster.description.empty());
  CHECK(cluster.nccl.nic_efficiency.provenance.kind == Kind::fitted);
  CHECK_THAT(cluster.nccl.nic_efficiency.provenance.source, Contains("95 % interval"));
  // The file has four digits.
  CHECK(cluster.nccl.nic_efficiency.value ==
        Approx(found(summary, "nccl.nic_efficiency").value).epsilon(1e-3));
  CHECK(cluster.nccl.link_efficiency.value ==
        Approx(found(summary, "nccl.link_efficiency").value).epsilon(1e-3));
  REQUIRE(cluster.calibration);
  const Calibration& calibration = *cluster.calibration;
  CHECK(calibration.source == "three \"good\" nights");
  CHECK(calibration.operations.size() == 3);
  CHECK(calibration.sizes.low == 1024);
  REQUIRE(calibration.layouts.size() == 2);
  CHECK(calibration.layouts[0].gpus_per_node == 2);
  CHECK(calibration.layouts[1].gpus_per_node == 4);
  for (const auto& layout : calibration.layouts) {
    CHECK(layout.nodes.low == 1);
    CHECK(layout.nodes.high == 8);
  }
  REQUIRE(calibration.bands.size() == 3);
  // 90 % of a noise of 5 % lies within 1.645 times it.
  CHECK(calibration.bands[2].low == Approx(std::exp(-1.645 * 0.05)).epsilon(0.04));
  CHECK(calibration.bands[2].high == Approx(std::exp(1.645 * 0.05)).epsilon(0.04));
  // Writing the description again gives the same text.
  CHECK(calibrated_cluster(text, "mine.toml", "mine", summary, "three \"good\" nights") == text);
}

TEST_CASE("calibrate: tables that cannot be placed are refused with a reason") {
  const auto refused = [](Measurement table) {
    table.provenance.source = "table.csv";
    try {
      calibrate(base, "base.toml", std::vector{table});
    } catch (const Error& error) {
      CHECK(error.code() == Exit::usage);
      return std::string(error.what());
    }
    return std::string();
  };
  const Measurement good = made_up(Operation::all_reduce, 2, 4, 0, 1);
  CHECK(refused(good).empty());
  Measurement bad = good;
  bad.nodes.reset();
  CHECK_THAT(refused(bad),
             Contains("table.csv: does not state the number of nodes of its 8 ranks"));
  bad = good;
  bad.nodes = 1;
  CHECK_THAT(refused(bad), Contains("8 ranks per node do not fit made-up"));
  bad.nodes = 3;
  CHECK_THAT(refused(bad), Contains("8 ranks do not spread evenly over 3 nodes"));
  bad.ranks = 1;
  CHECK_THAT(refused(bad), Contains("moves nothing"));
  bad = good;
  bad.operation = Operation::ping_pong;
  CHECK_THAT(refused(bad), Contains("8 ranks are no pair"));
  bad.ranks = 2;
  CHECK_THAT(refused(bad),
             Contains("a ping_pong of MPI does not measure NCCL: calibrate with --backend mpi"));
  bad.streams = 1;
  CHECK_THAT(refused(bad),
             Contains("a latency measured without a library does not set that of a library"));
  // Rows of an RDMA stream count only from 64 KiB on (counts() in measured_series.h), so no row is
  // left here.
  bad.operation = Operation::stream;
  bad.rows = {{Bytes(64), Duration::microseconds(1), {}}};
  CHECK_THAT(refused(bad), Contains("no row with a time"));
  bad = good;
  bad.rows.clear();
  CHECK_THAT(refused(bad), Contains("no row with a time"));
}

TEST_CASE("calibrate: hosts of one NVLink domain are one node, as a log does not count them") {
  Table description = Table::parse(base, "rack.toml");
  description.set("node.gpus", "72", "test");
  description.set("nic.count", "72", "test");
  const Cluster rack = decode_cluster(description, "rack.toml");
  Measurement table;
  table.operation = Operation::all_gather;
  const auto layout = [&](int ranks, int nodes) {
    table.ranks = ranks;
    table.nodes = nodes;
    const MeasuredSeries series = series_of(table, rack, Backend::nccl);
    return std::pair{series.nodes, series.gpus_per_node};
  };
  CHECK(layout(8, 2) == std::pair{1, 8});     // two trays
  CHECK(layout(72, 18) == std::pair{1, 72});  // a rack
  CHECK(layout(144, 36) == std::pair{2, 72});
  CHECK(layout(144, 2) == std::pair{2, 72});  // racks count as nodes
  CHECK(layout(64, 1) == std::pair{1, 64});
}

TEST_CASE("calibrate: DeepSpeed's exchange over MPI is its three collectives") {
  Measurement table;
  table.operation = Operation::compressed_allreduce;
  table.algorithm = "DeepSpeed MPI exchange, ring allgather";
  table.ranks = 8;
  table.nodes = 2;
  Table description = Table::parse(base, "base.toml");
  for (const char* key : {"base", "local_hop", "network_hop"})
    description.set(std::string("mpi.mpi.") + key, "0 us", "test");
  description.set("mpi.message_overhead", "0 us", "test");
  description.set("node.host_link", "1000 GB/s", "test");
  description.set("mpi.flow_cap", "1000 GB/s", "test");
  const Cluster cluster = decode_cluster(description, "base.toml");
  MeasuredSeries series = series_of(table, cluster, Backend::mpi_host);
  // The signs of 1 GB of fp32 are 31.25 MB. In the gather each of the 4 ranks of a node sends 4 of
  // 8 chunks, half of the signs, to the other node at 20 GB/s. The ring of the all-gather sends 7/8
  // of signs and scales over 4 NICs, which have 80 GB/s together.
  const double signs = 1e9 / 32, scales = 4 * 8;
  CHECK(forecast_time(series, Bytes(1e9)).s() ==
        Approx(signs / 2 / 20e9 + 7. / 8 * (signs + scales) / 80e9).epsilon(1e-4));
  // On four nodes with TCP, the ranks send messages of signs / 16 bytes in turn. Without a burst of
  // the NIC the last node waits: 2/3 of the gather is delayed by the share that 128 KiB are of a
  // message.
  table.ranks = 16;
  table.nodes = 4;
  description.set("nic.network", "socket", "test");
  const auto time_with = [&](const char* burst) {
    description.set("nic.burst", burst, "test");
    MeasuredSeries socket =
        series_of(table, decode_cluster(description, "base.toml"), Backend::mpi_host);
    return forecast_time(socket, Bytes(1e9)).s();
  };
  const double gather = signs * 12 / 16 / 20e9, late = gather * 2 / 3 * 131072 / (signs / 16);
  const double without = gather + 15. / 16 * (signs + 4 * 16) / 80e9;
  CHECK(time_with("0 B") == Approx(without + late).epsilon(1e-4));
  CHECK(time_with("1 GB") == Approx(without).epsilon(1e-4));
  CHECK_THROWS_WITH(series_of(table, cluster, Backend::nccl),
                    Contains("compressed_allreduce is not forecast here from NCCL tables"));
}

// Returns a table of 2 GB over `streams` connections, as iperf3 would report it.
Measurement wire(int streams, double GBps) {
  Measurement table;
  table.operation = Operation::stream;
  table.ranks = table.nodes.emplace(2);
  table.streams = streams;
  table.provenance = {Kind::measured, "iperf3"};
  table.rows.push_back({Bytes(2e9), Duration::seconds(2 / GBps), {}});
  return table;
}

TEST_CASE(
    "calibrate: one and several connections determine the rate of a NIC and of a connection") {
  // Eight connections fill the NIC, one does not.
  const std::vector tables{wire(1, 2.5), wire(8, 11)};
  std::vector<int> over;
  const FitSummary summary =
      calibrate(base, "base.toml", tables, Backend::nccl, [&](int done, int all) {
        CHECK(all == 20);
        over.push_back(done);
      });
  // Progress counts the searches of both fits, without and with the limit. Tables of one row leave
  // one half of the data empty, so each fit has 9 searches instead of 10.
  REQUIRE(over.size() == 18);
  CHECK(over.front() == 0);
  CHECK(over.back() == 17);
  CHECK(found(summary, "nic.bandwidth").value == Approx(11).epsilon(0.01));
  CHECK(found(summary, "nccl.flow_cap").value == Approx(2.5).epsilon(0.01));
  const std::string text = calibrated_cluster(base, "base.toml", "mine", summary, "iperf3 -P");
  const Cluster cluster = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  CHECK(cluster.nccl.flow_cap->value.value() == Approx(2.5e9).epsilon(0.01));
  CHECK_THAT(cluster.nic_bandwidth.provenance.source, Contains("iperf3 -P"));
  // A stream of bytes contains nothing about the error of collectives.
  CHECK_FALSE(summary.calibration.has_value());
  CHECK_FALSE(cluster.calibration.has_value());
  // Two connections are as fast as one, so the NIC is the limit and no other limit is written.
  const FitSummary full = calibrate(base, "base.toml", std::vector{wire(1, 11), wire(2, 11)});
  CHECK(found(full, "nic.bandwidth").value == Approx(11).epsilon(0.01));
  CHECK_FALSE(has(full, "nccl.flow_cap"));
}

TEST_CASE("calibrate: messages between two ranks determine the latency and the cost of a message") {
  Table truth = Table::parse(base, "truth.toml");
  truth.set("node.host_link", "18 GB/s", "test");
  truth.set("mpi.mpi.network_hop", "23 us", "test");
  truth.set("mpi.message_overhead", "3 us", "test");
  truth.set("mpi.nic_efficiency", "0.3", "test");
  const Cluster cluster = decode_cluster(truth, "truth.toml");
  std::vector<Measurement> tables;
  for (const auto& [operation, nodes] :
       {std::pair{Operation::ping_pong, 2}, {Operation::stream, 2}, {Operation::stream, 1}}) {
    Measurement table;
    table.operation = operation;
    table.ranks = 2;
    table.nodes = nodes;
    table.provenance = {Kind::measured, "OSU"};
    MeasuredSeries series = series_of(table, cluster, Backend::mpi_host);
    for (double size = 8; size < 1e8; size *= 4)
      table.rows.push_back({Bytes(size), forecast_time(series, Bytes(size)), {}});
    tables.push_back(table);
  }
  // In a stream, a message takes the time of its bytes or the overhead of posting it, whichever is
  // longer. Only the ping-pong includes the latency.
  CHECK(tables[0].rows.front().time.us() == Approx(23).epsilon(0.001));
  CHECK(tables[1].rows.front().time.us() == Approx(3));
  CHECK(tables[1].rows.back().time.s() ==
        Approx(tables[1].rows.back().size.value() / (0.3 * 20e9)));
  const FitSummary summary = calibrate(base, "base.toml", tables, Backend::mpi_host);
  for (const auto& [key, value] : std::vector<std::pair<const char*, double>>{
           {"mpi.message_overhead", 3}, {"mpi.nic_efficiency", 0.3}, {"node.host_link", 18}}) {
    INFO(key);
    CHECK(found(summary, key).identified);
    CHECK(found(summary, key).value == Approx(value).epsilon(0.03));
  }
  // Only the sum of base and hop of a protocol is measurable.
  CHECK(found(summary, "mpi.mpi.base").value + found(summary, "mpi.mpi.network_hop").value ==
        Approx(23).epsilon(0.03));
  REQUIRE(summary.calibration);
  CHECK(summary.calibration->operations == std::vector{Op::send_recv});
}

TEST_CASE("calibrate: the rate of copies through host memory, from tables with and without them") {
  Table truth = Table::parse(base, "truth.toml");
  truth.set("host_copy.pageable_to_host", "3 GB/s", "test");
  truth.set("host_copy.pageable_to_device", "3 GB/s", "test");
  const Cluster cluster = decode_cluster(truth, "truth.toml");
  std::vector<Measurement> tables;
  for (const bool staged : {false, true}) {
    Measurement table;
    table.operation = Operation::compressed_allreduce;
    table.ranks = 8;
    table.nodes = 2;
    if (staged) table.staging = "memcpy";
    table.provenance = {Kind::measured, "made-up"};
    MeasuredSeries series = series_of(table, cluster, Backend::mpi_host);
    for (double size = 1 << 16; size < 1e9; size *= 4)
      table.rows.push_back({Bytes(size), forecast_time(series, Bytes(size)), {}});
    tables.push_back(table);
  }
  // The copies move the signs five times and a chunk of them, an eighth, twice. The scales, 4 bytes
  // per rank, are negligible.
  const double signs = tables[1].rows.back().size.value() / 32;
  CHECK((tables[1].rows.back().time - tables[0].rows.back().time).s() ==
        Approx(5.25 * signs / 3e9).epsilon(0.001));
  const FitSummary summary = calibrate(base, "base.toml", tables, Backend::mpi_host);
  CHECK(found(summary, "host_copy.pageable_to_host").identified);
  CHECK(found(summary, "host_copy.pageable_to_host").value == Approx(3).epsilon(0.03));
  const std::string text = calibrated_cluster(base, "base.toml", "mine", summary, "made-up");
  const Cluster fitted = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  CHECK(fitted.host_copy.pageable_to_device->value.value() == Approx(3e9).epsilon(0.03));
}

TEST_CASE("calibrate: an invalid section is refused at its line") {
  const auto refused = [](const std::string& section) {
    try {
      decode_cluster(Table::parse(base + section, "bad.toml"), "bad.toml");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string head =
      "[calibration]\nlibrary = \"nccl\"\noperations = [\"all_reduce\"]\nsmallest = \"8 B\"\n"
      "largest = \"1 MiB\"\n[[calibration.layouts]]\nnodes = [1, 2]\ngpus_per_node = 4\n";
  const std::string band = "[[calibration.bands]]\nlow = 0.9\nhigh = 1.2\n";
  CHECK(refused(head + band).empty());
  CHECK_THAT(refused(head), Contains("calibration.bands"));
  CHECK_THAT(refused(head + "[[calibration.bands]]\nlow = 1.3\nhigh = 1.2\n"),
             Contains("is below low"));
  CHECK_THAT(refused(head + band + band), Contains("bands must be in order"));
  std::string other = head;
  other.replace(other.find("[1, 2]"), 6, "[2, 1]");
  CHECK_THAT(refused(other + band), Contains("layouts[0].nodes") && Contains("is not a range"));
  other = head.substr(0, head.find("[[")) + band;
  CHECK_THAT(refused(other), Contains("calibration.layouts: is empty"));
  other = head;
  other.replace(other.find("all_reduce"), 10, "all_reduse");
  CHECK_THAT(refused(other + band), Contains("did you mean 'all_reduce'"));
}

}  // namespace
}  // namespace lambcast::validate
