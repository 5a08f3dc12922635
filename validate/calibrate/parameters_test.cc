#include "validate/calibrate/parameters.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "validate/calibrate/made_up_machine.h"

namespace lambcast::validate {
namespace {

const Cluster& start() {
  static const Cluster cluster =
      decode_cluster(Table::parse(made_up_base, "base.toml"), "base.toml");
  return cluster;
}

// Returns a table of the rate of several connections between two nodes.
Measurement stream(int connections) {
  Measurement table;
  table.operation = Operation::stream;
  table.ranks = table.nodes.emplace(2);
  table.streams = connections;
  return table;
}

struct Bounds {
  double start, low, high;
};
void check_bounds(const std::vector<Parameter>& parameters, const std::string& key, Bounds bounds) {
  INFO(key);
  const auto found = std::find_if(parameters.begin(), parameters.end(),
                                  [&](const Parameter& each) { return each.key == key; });
  REQUIRE(found != parameters.end());
  CHECK(found->start == Approx(bounds.start));
  CHECK(found->low == Approx(bounds.low));
  CHECK(found->high == Approx(bounds.high));
}

// NICs of a nominal 25 GB/s, with a described rate of 20 GB/s.
TEST_CASE("parameters: a NIC is limited by its name plate, a connection by its NIC") {
  const std::vector<Parameter> of_both =
      parameters_for(start(), std::vector{stream(1), stream(8)}, Backend::nccl);
  check_bounds(of_both, "nic.bandwidth", {20, 20. / 100, 25});
  // An unknown rate of a connection starts at half of a NIC's, so that it has an effect.
  check_bounds(of_both, "nccl.flow_cap", {25. / 2, 25e-3, 25});
  // Equal numbers of connections in all tables do not determine the rate of one.
  const auto caps = [](const std::vector<Parameter>& all) {
    return std::count_if(all.begin(), all.end(), [](const Parameter& each) {
      return each.key == "nccl.flow_cap" && each.optional;
    });
  };
  CHECK(caps(of_both) == 1);
  CHECK(caps(parameters_for(start(), std::vector{stream(8)}, Backend::nccl)) == 0);
}

// Each of four GPUs has its own NIC, and a connection to every GPU of the other node.
TEST_CASE("parameters: an exchange has one connection per NIC for each GPU of the other node") {
  const auto counts_are_unlike = [](int connections) {
    const std::vector tables{stream(connections), made_up(Operation::all_to_all, 2, 4, 0, 1)};
    const std::vector<Parameter> all = parameters_for(start(), tables, Backend::nccl);
    return std::any_of(all.begin(), all.end(),
                       [](const Parameter& each) { return each.key == "nccl.flow_cap"; });
  };
  CHECK_FALSE(counts_are_unlike(4));
  for (const int other : {1, 2, 3, 5, 8}) CHECK(counts_are_unlike(other));
}

TEST_CASE("parameters: only all_to_alls between nodes add all_to_all_efficiency") {
  const auto has = [](const char* preset, const Measurement& table) {
    const auto all = parameters_for(load_cluster(preset, {}), std::vector{table}, Backend::nccl);
    return std::ranges::find(all, "nccl.all_to_all_efficiency", &Parameter::key) != all.end();
  };
  CHECK(has("hgx-h100-ndr", made_up(Operation::all_to_all, 2, 4, 0, 1)));
  CHECK_FALSE(has("hgx-h100-ndr", made_up(Operation::all_to_all, 1, 4, 0, 1)));
  CHECK_FALSE(has("hgx-h100-ndr", made_up(Operation::all_gather, 2, 4, 0, 1)));
  CHECK_FALSE(has("h20-roce", made_up(Operation::all_to_all, 2, 4, 0, 1)));
  CHECK_FALSE(has("commodity-10gbe", made_up(Operation::all_to_all, 2, 4, 0, 1)));
}

TEST_CASE("parameters: shares of links, NICs and trees stay within what is possible") {
  const LibrarySpec& nccl = start().nccl;
  const std::vector<Parameter> all = parameters_for(start(), all_tables(0, 1), Backend::nccl);
  check_bounds(all, "nccl.link_efficiency", {nccl.link_efficiency.value, 0.2, 2});
  check_bounds(all, "nccl.nic_efficiency", {nccl.nic_efficiency.value, 0.02, 25. / 20});
  check_bounds(all, "nccl.tree_efficiency", {nccl.tree_efficiency.value, 0.2, 1});
  check_bounds(all, "nccl.slice", {1 << 20, 1 << 14, 1 << 24});
  check_bounds(all, "nccl.LL.efficiency", {nccl.protocols[0].efficiency.value, 0.02, 0.5});
  const Cluster switched = load_cluster("hgx-h100-ndr", {});
  check_bounds(parameters_for(switched, std::vector{made_up(Operation::all_reduce, 2, 4, 0, 1)},
                              Backend::nccl),
               "nccl.nvls.efficiency", {switched.nccl.nvls->efficiency.value, 0.3, 1.5});
  for (const Parameter& parameter : all) {
    INFO(parameter.key);
    CHECK(parameter.low > 0);
    CHECK(parameter.low < parameter.high);
    CHECK(parameter.start >= parameter.low);
    CHECK(parameter.start <= parameter.high);
    CHECK(parameter.prior_width > 0);
  }
}

}  // namespace
}  // namespace lambcast::validate
