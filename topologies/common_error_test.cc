#include "topologies/common_error.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

double r_of(const char* preset, Op op, const ProcessGroup& group, const Overrides& overrides = {},
            Backend backend = Backend::nccl) {
  return common_error(load_cluster(preset, overrides), backend, op, group);
}

TEST_CASE("common error: rings err together, messages between nodes independently") {
  const ProcessGroup nodes{16, 8}, node{8, 8};
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast})
    CHECK(r_of("hgx-h100-ndr", op, nodes) == 0.74);
  CHECK(r_of("hgx-h100-ndr", Op::all_to_all, nodes) == 0);
  CHECK(r_of("hgx-h100-ndr", Op::send_recv, nodes) == 0);
  CHECK(r_of("hgx-h100-ndr", Op::all_to_all, node) == 0.74);
  CHECK(r_of("hgx-h100-ndr", Op::all_gather, nodes, {}, Backend::mpi_host) == 0);
  // After a fit to tables of this machine, the remaining errors have less in common.
  CHECK(r_of("hgx-h100-ndr", Op::all_gather, nodes, {{"calibration.machine", "this"}}) == 0.3);
}

// Two connections of 0.645 GB/s carry 10.3 Gbit/s: more than a NIC of 1 Gbit/s, less than one of
// 100 Gbit/s.
TEST_CASE("common error: all operations err together over a NIC that limits its connections") {
  const ProcessGroup nodes{32, 4};
  const auto at = [&](const char* nic, Op op) {
    return r_of("commodity-100gbe", op, nodes, {{"nic.nominal", nic}, {"nic.bandwidth", nic}});
  };
  CHECK(at("1 Gbit/s", Op::all_to_all) == Approx(0.95));
  CHECK(at("1 Gbit/s", Op::all_reduce) == Approx(0.95));
  CHECK(at("1 Gbit/s", Op::broadcast) == Approx(0.74));
  CHECK(at("100 Gbit/s", Op::all_to_all) == Approx(0).margin(1e-6));
  CHECK(at("100 Gbit/s", Op::all_reduce) == Approx(0.47));
  // 16 connections carry more than a NIC of 25 Gbit/s.
  CHECK(r_of("commodity-25gbe", Op::all_to_all, nodes, {{"nccl.connections", "16"}}) ==
        Approx(0.95).epsilon(0.001));
  CHECK(r_of("commodity-10gbe", Op::all_to_all, {4, 4}) == 0.74);
  // c falls without jumps as the rate of the NIC grows.
  double before = at("5 Gbit/s", Op::all_to_all);
  for (double gbit = 5.05; gbit < 30; gbit *= 1.01) {
    const double now = at(std::to_string(gbit).append(" Gbit/s").c_str(), Op::all_to_all);
    CHECK(now <= before);
    CHECK(now > before - 0.02);
    before = now;
  }
  // Derivation of 0.47: a connection's rate (logarithm) has a standard deviation of 0.4, and the
  // interval a half-width of 0.9.
  CHECK(1 - std::pow(1.645 * 0.4 / 0.9, 2) == Approx(0.47).epsilon(0.01));
  // Derivation of 0.95: the ratio of two operations with half-widths of 0.55 is known to a factor
  // of 1.2.
  CHECK(std::exp(0.55 * std::sqrt(2 * (1 - 0.95))) == Approx(1.2).epsilon(0.01));
}

}  // namespace
}  // namespace lambcast
