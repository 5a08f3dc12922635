#include "topologies/common_error.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

double of(const char* preset, Op op, const ProcessGroup& group, const Overrides& overrides = {},
          Backend backend = Backend::nccl) {
  return common_error(load_cluster(preset, overrides), backend, op, group);
}

TEST_CASE("common error: rings err together, messages between nodes by themselves") {
  const ProcessGroup nodes{16, 8}, node{8, 8};
  for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::broadcast})
    CHECK(of("hgx-h100-ndr", op, nodes) == 0.74);
  CHECK(of("hgx-h100-ndr", Op::all_to_all, nodes) == 0);
  CHECK(of("hgx-h100-ndr", Op::send_recv, nodes) == 0);
  CHECK(of("hgx-h100-ndr", Op::all_to_all, node) == 0.74);
  CHECK(of("hgx-h100-ndr", Op::all_gather, nodes, {}, Backend::mpi_host) == 0);
  // Tables of the machine itself leave less in common.
  const Overrides own{{"calibration.machine", "this"}};
  CHECK(of("hgx-h100-ndr", Op::all_gather, nodes, own) == 0.3);
}

// Two connections of 0.637 GB/s, one for each channel, carry 10.2 Gbit/s.
TEST_CASE("common error: a NIC that is slower than its connections sets all rates") {
  const ProcessGroup nodes{32, 4};
  CHECK(of("commodity-10gbe", Op::all_to_all, nodes) == 0.95);
  CHECK(of("commodity-10gbe", Op::all_reduce, nodes) == 0.95);
  CHECK(of("commodity-25gbe", Op::all_to_all, nodes) == 0);
  CHECK(of("commodity-25gbe", Op::all_reduce, nodes) == 0.74);
  CHECK(of("commodity-25gbe", Op::all_to_all, nodes, {{"nccl.connections", "4"}}) == 0.95);
  CHECK(of("commodity-10gbe", Op::all_to_all, {4, 4}) == 0.74);
  // The ratio of two operations with half-widths of 0.55 is good to a factor of 1.2.
  CHECK(std::exp(0.55 * std::sqrt(2 * (1 - 0.95))) == Approx(1.2).epsilon(0.01));
}

}  // namespace
}  // namespace lambcast
