// Tests norms of a block, and the branches of a parallel one.
#include <algorithm>
#include <catch2/catch.hpp>

#include "models/device/pieces_case.h"

namespace lambcast {
namespace {

TEST_CASE("block time: a parallel block has one norm, one dropout add and a sum of its branches") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  const auto all = [&](std::string_view name) {
    return bytes_of(block_forward(work, a100), name) + bytes_of(block_backward(work, a100), name);
  };
  const double products = flops(block_forward(work, a100)) + flops(block_backward(work, a100));
  const double norms = all("norm"), dropouts = all("dropout"), residuals = all("residual");
  CHECK(all("sum of branches") == 0);
  work.parallel_block = true;
  work.norms = 1;
  CHECK(flops(block_forward(work, a100)) + flops(block_backward(work, a100)) == products);
  CHECK(all("norm") == norms / 2);
  CHECK(all("dropout") == dropouts / 2);
  CHECK(all("residual") == residuals / 2);
  CHECK(all("sum of branches") == 2 * 6 * 8192. * 6144);
  work.fusion = Fusion::compiled;
  CHECK(all("sum of branches") == 0);
  // With a norm for each half, there are two input gradients, and each norm adds one. Only the
  // forward sum of the branches remains.
  work.fusion = Fusion::fused;
  work.norms = 2;
  CHECK(all("norm") == norms);
  CHECK(all("sum of branches") == 6 * 8192. * 6144);
}

TEST_CASE(
    "block time: norms after both halves cost the same as the others, and a block ends with one") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work = block_22b();
  const auto forward = [&] { return bytes_of(block_forward(work, a100), "norm"); };
  const auto backward = [&] { return bytes_of(block_backward(work, a100), "norm"); };
  const double ahead = forward(), gradients = backward();
  work.norms = 4;
  CHECK(forward() == 2 * ahead);
  CHECK(backward() == 2 * gradients);
  // A block that ends before its last product recomputes this product if a norm follows it.
  work.repeated = Repeated::until_last_product;
  const auto downs = [&] {
    return std::ranges::count_if(block_backward(work, a100), [](const Piece& piece) {
      return piece.name == "down" && piece.pass == Pass::recompute;
    });
  };
  CHECK(downs() == 1);
  work.norms = 2;
  CHECK(downs() == 0);
}

}  // namespace
}  // namespace lambcast
