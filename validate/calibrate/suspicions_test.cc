#include "validate/calibrate/suspicions.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "sim/base/csv.h"
#include "sim/base/file.h"
#include "validate/calibrate/carried_table.h"
#include "validate/calibrate/made_up_machine.h"

namespace lambcast::validate {
namespace {

// Returns a table without its printed bandwidths, so that only its times count.
Measurement silent(const std::string& name) {
  Measurement table = carried(name);
  table.printed.reset();
  return table;
}

const Cluster& preset(const std::string& name) {
  static std::map<std::string, Cluster> all;
  const auto [found, fresh] = all.try_emplace(name);
  if (fresh) found->second = load_cluster(name, {});
  return found->second;
}

// Returns the description before any fit.
const Cluster& plain(const std::string& name) {
  static std::map<std::string, Cluster> all;
  const auto [found, fresh] = all.try_emplace(name);
  const std::string file = std::string(LAMBCAST_VALIDATE) + "/calibrate/bases/" + name + ".toml";
  if (fresh) found->second = decode_cluster(Table::parse(read_file(file), name), name);
  return found->second;
}

struct Spoiled {
  const char* what;
  const char* cluster;
  Measurement table;
  const char* named;  // text expected in the warning
};

using Spoil = std::function<void(Measurement&)>;

Spoil sizes_times(double factor) {
  return [factor](Measurement& table) {
    for (Row& row : table.rows) row.size = row.size * factor;
  };
}

Spoil times_times(double factor) {
  return [factor](Measurement& table) {
    for (Row& row : table.rows) row.time = row.time.scaled(factor);
  };
}

Spoil operation_is(Operation operation) {
  return [operation](Measurement& table) { table.operation = operation; };
}

Spoil layout_is(int nodes, int gpus_per_node) {
  return [nodes, gpus_per_node](Measurement& table) {
    table.ranks = nodes * gpus_per_node;
    table.nodes = nodes;
    table.gpus_per_node = gpus_per_node;
  };
}

Spoil sizes_within(double from, double to) {
  return [from, to](Measurement& table) {
    std::erase_if(table.rows,
                  [&](const Row& row) { return row.size.value() < from || row.size.value() > to; });
  };
}

// Reduces the rate of large messages to this share; latencies stay.
Spoil rate_times(double share) {
  return [share](Measurement& table) {
    const Row& largest = table.rows.back();
    const double us_per_byte = largest.time.us() / largest.size.value();
    for (Row& row : table.rows)
      row.time += Duration::microseconds(us_per_byte * row.size.value() * (1 / share - 1));
  };
}

const char* const a3_mega = "allgather_h100_2n16r_tcpxo1600_gcptoolkit.csv";
const char* const p4d = "allreduce_a100_2n16r_efa400_awsome.csv";
const char* const p5 = "allreduce_h100_2n16r_efa3200_awsome.csv";
const char* const p3dn = "allreduce_v100_2n16r_efa100_awsdocs.csv";
const char* const h100 = "allreduce_h100_2n16r_ibndr3200_nccltests309a.csv";
const char* const h100_of_4 = "allreduce_h100_4n32r_ibndr3200_nccltests309e.csv";
const char* const one_node = "allreduce_h100_1n8r_nvlink_awsbatch.csv";
const char* const exchange = "alltoall_rtx6000d_2n16r_roce_aroff.csv";
const char* const scatter = "perlmutter_reducescatter_a100_4n16r_ss11.csv";
const char* const gather = "perlmutter_allgather_a100_8n32r_ss11.csv";
const char* const reduce = "perlmutter_allreduce_a100_4n16r_ss11.csv";
const char* const over_tcp = "allreduce_gh200_2n8r_tcpfallback_cscs.csv";

std::vector<Spoiled> wrong_tables() {
  std::vector<Spoiled> all;
  const auto add = [&](const char* what, const char* cluster, const char* name, const Spoil& spoil,
                       const char* named) {
    Measurement table = silent(name);
    spoil(table);
    all.push_back({what, cluster, std::move(table), named});
  };
  const Spoil nothing = [](Measurement&) {};
  add("all_gather, sizes of a rank", "gcp-a3-mega", a3_mega, sizes_times(1. / 16), "one rank");
  add("reduce_scatter, sizes of a rank", "perlmutter-a100", scatter, sizes_times(1. / 16),
      "one rank");
  add("all_to_all, sizes of a rank", "rtx6000d-roce", exchange, sizes_times(1. / 16), "one rank");
  add("all_gather, sizes times ranks", "perlmutter-a100", gather, sizes_times(32),
      "times the number of ranks");
  add("all_reduce for all_gather", "aws-p4d", p4d, operation_is(Operation::all_gather),
      "all_reduce");
  add("all_gather for all_reduce", "gcp-a3-mega", a3_mega, operation_is(Operation::all_reduce),
      "all_gather");
  add("reduce_scatter for all_reduce", "perlmutter-a100", scatter,
      operation_is(Operation::all_reduce), "reduce_scatter");
  add("all_reduce for all_to_all", "hgx-h100-ndr", h100, operation_is(Operation::all_to_all),
      "all_reduce");
  add("32 ranks on 4 nodes for 8 on 1", "hgx-h100-ndr", h100_of_4, layout_is(1, 8), "32 ranks");
  add("8 ranks on 1 node for 16 on 2", "aws-p5", one_node, layout_is(2, 8), "8 ranks");
  add("16 ranks on 4 nodes for 4 on 4", "perlmutter-a100", reduce, layout_is(4, 1), "16 ranks");
  add("16 ranks on 2 nodes for 8 nodes of 2", "aws-p3dn", p3dn, layout_is(8, 2), "16 ranks");
  add("a tenth of the rate, EFA", "aws-p5", p5, rate_times(0.1), "network");
  add("a tenth of the rate, InfiniBand", "hgx-h100-ndr", h100, rate_times(0.1),
      "% of its name plate): is the network");
  add("a quarter of the NICs", "perlmutter-a100", gather, rate_times(0.25), "network");
  add("TCP where Slingshot was meant", "alps-gh200", over_tcp, nothing, "as TCP sockets do");
  add("one row", "aws-p4d", p4d, sizes_within(1 << 30, 1 << 30), "too few");
  add(
      "rows of nearly one size", "aws-p4d", p4d,
      [](Measurement& table) {
        const Row row = table.rows.back();
        table.rows.clear();
        for (int i = 0; i < 8; ++i)
          table.rows.push_back({row.size * (1 + i / 16.), row.time.scaled(1 + i / 16.), {}});
      },
      "nearly one");
  add("latencies only", "aws-p5", p5, sizes_within(0, 65536), "does not determine the bandwidth");
  add("milliseconds", "perlmutter-a100", gather, times_times(1e-3), "milliseconds");
  add("nanoseconds", "hgx-h100-ndr", h100, times_times(1e3), "nanoseconds");
  add("times from busbw", "aws-p3dn", p3dn, times_times(1 / 1.875), "busbw");
  add("elements for bytes", "gcp-a3-mega", a3_mega, sizes_times(0.25), "slower");
  add("another machine", "hgx-h100-ndr", p4d, nothing, "network");
  add(
      "rows mixed up", "aws-p5", p5,
      [](Measurement& table) {
        for (std::size_t i = 1; i < table.rows.size(); i += 2)
          std::swap(table.rows[i - 1].time, table.rows[i].time);
      },
      "mixed up");
  // Only the header is wrong, 32 ranks for 16. It contradicts the printed bandwidths.
  Measurement columns = carried(a3_mega);
  columns.ranks = 32;
  columns.nodes = 4;
  all.push_back({"16 ranks for 32, columns", "gcp-a3-mega", columns, "number of ranks"});
  return all;
}

TEST_CASE("suspicions: wrong tables are noticed, with the reason") {
  int noticed = 0, named = 0, noticed_plain = 0;
  const std::vector<Spoiled> wrong = wrong_tables();
  REQUIRE(wrong.size() >= 20);
  for (const Spoiled& spoiled : wrong) {
    const std::span<const Measurement> table(&spoiled.table, 1);
    const auto suspicions = suspicions_of(preset(spoiled.cluster), table, Backend::nccl);
    const std::string text = fmt::format("{}", fmt::join(suspicions, " "));
    const bool names = text.find(spoiled.named) != std::string::npos;
    CHECK_THAT(text, !Catch::Matchers::Contains("?."));
    noticed += suspicions.empty() ? 0 : 1;
    named += names ? 1 : 0;
    const auto before = suspicions_of(plain(spoiled.cluster), table, Backend::nccl);
    noticed_plain += before.empty() ? 0 : 1;
  }
  fmt::print("wrong tables noticed: {} of {}, of {} the reason; from descriptions alone {}\n",
             noticed, wrong.size(), named, noticed_plain);
  CHECK(noticed * 10 >= static_cast<int>(wrong.size()) * 9);
  CHECK(named * 10 >= static_cast<int>(wrong.size()) * 8);
  CHECK(noticed_plain * 10 >= static_cast<int>(wrong.size()) * 7);
}

TEST_CASE("suspicions: bandwidths that contradict sizes and times show which of them is wrong") {
  struct Row {
    double bus_over_alg, alg_over_own;
    const char* said;
  };
  // busbw of an all_gather over 16 ranks is 15/16 of algbw.
  const double factor = 15. / 16;
  const std::vector<Row> rows{
      {factor, 1e3, "its algbw is 1e+03 times its sizes over its times: its times are not micro"},
      {factor, 1e-3, "its times are not microseconds"},
      {factor, 16, "its sizes are those of one rank, not totals"},
      {factor, 1. / 16, "its sizes are totals times the number of ranks"},
      {factor, 3, "its columns do not belong together"},
      {1 / factor, 1, "where all_gather over 16 ranks has 0.938: the operation"},
  };
  for (const Row& row : rows) {
    Measurement table = carried(a3_mega);
    table.printed = {row.bus_over_alg, row.alg_over_own};
    INFO(row.said);
    const auto said = suspicions_of(preset("gcp-a3-mega"), std::span(&table, 1), Backend::nccl);
    REQUIRE_FALSE(said.empty());
    CHECK_THAT(said.front(), Catch::Contains(row.said));
  }
}

std::string said_of(const Measurement& table) {
  const std::span<const Measurement> one(&table, 1);
  return fmt::format("{}", fmt::join(suspicions_of(true_cluster(), one, Backend::nccl), " "));
}

// A table of two GPUs per node, which use half of the NICs, is labelled as one of four GPUs per
// node; and the reverse.
TEST_CASE("suspicions: half of a node's GPUs use half of its NICs") {
  const Cluster& perlmutter = preset("perlmutter-a100");
  Measurement table = silent(reduce);
  const auto said = [&](int taken, int meant) {
    layout_is(4, taken)(table);
    MeasuredSeries series = series_of(table, perlmutter, Backend::nccl);
    for (Row& row : table.rows) row.time = forecast_time(series, row.size);
    layout_is(4, meant)(table);
    return fmt::format("{}", fmt::join(suspicions_of(perlmutter, {&table, 1}, Backend::nccl), " "));
  };
  CHECK(said(2, 2).empty());
  CHECK_THAT(said(2, 4), Catch::Contains("8 ranks over 4 nodes"));
  CHECK_THAT(said(4, 2), Catch::Contains("16 ranks over 4 nodes"));
}

TEST_CASE("suspicions: the rate of a slow network is given for each NIC") {
  // An all_reduce over n = 8 ranks sends 2 (n - 1) / n of its bytes over the four NICs of a node,
  // here at a twentieth of their rate.
  Measurement table = made_up(Operation::all_reduce, 2, 4, 0, 1);
  rate_times(0.05)(table);
  const Row& largest = table.rows.back();
  const double GBps = 2 * 7. / 8 * largest.size.value() / largest.time.s() / 4 * 1e-9;
  CHECK_THAT(said_of(table),
             Catch::Contains(fmt::format(" ({:.3g} GB/s a NIC, {:.2g} % of its name plate", GBps,
                                         GBps / 25 * 100)));
}

// The times fall in one of four pairs of consecutive sizes. A fall to exactly 0.7 does not count.
TEST_CASE("suspicions: rows are mixed up if times fall by more than three tenths") {
  for (const double second : {6.9, 7., 7.1}) {
    Measurement table = made_up(Operation::all_reduce, 2, 4, 0, 1, 1 << 20, 1 << 24);
    const double seconds[] = {10, second, 10, 20, 30};
    REQUIRE(table.rows.size() == 5);
    for (std::size_t i = 0; i < 5; ++i) table.rows[i].time = Duration::seconds(seconds[i]);
    INFO(second);
    CHECK((said_of(table).find("mixed up") != std::string::npos) == (second < 7));
  }
}

TEST_CASE("suspicions: good tables give none") {
  const csv::Table list = csv::parse(read_file(carried_tables + "tables.csv"), "tables.csv");
  int tables = 0, alarms = 0, alarms_plain = 0;
  for (std::size_t row = 0; row < list.rows.size(); ++row) {
    const std::string &name = list.text(row, "table"), &cluster = list.text(row, "cluster");
    if (cluster == "emulated-ethernet-100mbit") continue;
    const Measurement table = carried(name);
    const std::span<const Measurement> one(&table, 1);
    INFO(name);
    ++tables;
    const auto of_preset = suspicions_of(preset(cluster), one, Backend::nccl);
    const auto of_plain = suspicions_of(plain(cluster), one, Backend::nccl);
    alarms += of_preset.empty() ? 0 : 1;
    alarms_plain += of_plain.empty() ? 0 : 1;
    for (const auto& text : of_preset) UNSCOPED_INFO(text);
    for (const auto& text : of_plain) UNSCOPED_INFO(text);
    CHECK(of_preset.empty());
    CHECK(of_plain.empty());
  }
  fmt::print("good tables with an alarm: {} of {}, from descriptions alone {}\n", alarms, tables,
             alarms_plain);
  CHECK(tables >= 50);
}

}  // namespace
}  // namespace lambcast::validate
