#include "models/training/price/beside_collectives.h"

#include <catch2/catch.hpp>

#include "topologies/cluster.h"

namespace lambcast {
namespace {

// Four blocks of NCCL for each NIC that a group uses, at most 32; within a node for each GPU.
TEST_CASE("beside collectives: NCCL's blocks for each NIC take a multiprocessor each") {
  GpuRates rates;
  rates.multiprocessors = 108;
  const auto blocks = [&](const char* cluster, const ProcessGroup& group) {
    return 108 * lost_to_collectives(group, load_cluster(cluster, {}), rates);
  };
  CHECK(blocks("internevo-a100", {64, 8}) == Approx(16));
  CHECK(blocks("azure-ndv2", {64, 8}) == Approx(4));
  CHECK(blocks("dgx-a100-80g", {64, 8}) == Approx(32));
  CHECK(blocks("dgx-a100-80g", {64, 1}) == Approx(4));
  CHECK(blocks("internevo-a100", {8, 8}) == Approx(32));
}

TEST_CASE(
    "beside collectives: one of four chunks behind a product is exposed, none if they are "
    "gathered") {
  const auto us = [](double n) { return Duration::microseconds(n); };
  CHECK(beyond_chunks(us(8), us(100), 4, false) == us(2));
  CHECK(beyond_chunks(us(8), us(100), 4, true) == us(0));
  CHECK(beyond_chunks(us(8), us(4), 4, false) == us(5));
  CHECK(beyond_chunks(us(8), us(4), 4, true) == us(5));
}

// With a share of 3/10, kernels lose 3/10 of a collective that ends first. If the collective
// outlasts them, they take 10/7 of their time.
TEST_CASE("beside collectives: kernels lose time to a collective only while both run") {
  const auto us = [](double n) { return Duration::microseconds(n); };
  CHECK(lost_beside(us(100), us(140), 0.3).us() == Approx(30));
  CHECK(lost_beside(us(200), us(140), 0.3).us() == Approx(60));
  CHECK(lost_beside(us(9000), us(140), 0.3).us() == Approx(60));
  CHECK(lost_beside(us(100), us(140), 0) == us(0));
}

}  // namespace
}  // namespace lambcast
