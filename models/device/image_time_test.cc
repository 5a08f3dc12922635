#include "models/device/image_time.h"

#include <catch2/catch.hpp>

#include "models/device/pieces_case.h"

namespace lambcast {
namespace {

TEST_CASE(
    "image time: windows attend separately and need copies; autocast doubles memory traffic") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork whole;
  whole.hidden = 64, whole.heads = whole.kv_heads = 2, whole.ffn = 256;
  whole.micro_batch = 2, whole.seq_len = 64;
  whole.fusion = Fusion::eager, whole.attention = AttentionKernel::unfused;
  BlockWork apart = whole;
  apart.windows = 4;
  const double scores = 4.0 * 2 * 64 * 64 * 64;  // both products, for all pairs
  CHECK(flops(block_forward(whole, a100)) - flops(block_forward(apart, a100)) ==
        Approx(0.75 * scores));
  CHECK(bytes_of(block_forward(whole, a100), "windows") == 0);
  CHECK(bytes_of(block_forward(apart, a100), "windows") == 12 * 2 * 64 * 64);
  BlockWork cast = apart;
  cast.autocast = true;
  CHECK(bytes_of(block_forward(cast, a100), "norm") ==
        2 * bytes_of(block_forward(apart, a100), "norm"));
  CHECK(bytes_of(block_backward(cast, a100), "heads") == 86 * 2 * 64 * 64);
  CHECK(flops(block_backward(cast, a100)) == Approx(flops(block_backward(apart, a100))));
}

TEST_CASE("image time: four tokens merge into one of twice the width, and patches into tokens") {
  const GpuRates a100 = rates_of("a100-80g");
  BlockWork work;
  work.hidden = 64, work.heads = work.kv_heads = 2, work.ffn = 256;
  work.micro_batch = 2, work.seq_len = 16, work.patch_values = 48;
  CHECK(flops(merging_forward(work, a100)) == 2.0 * 32 * 64 * 128);
  CHECK(flops(merging_backward(work, a100)) == 4.0 * 32 * 64 * 128);
  CHECK(flops(embedding_forward(work, a100)) == 2.0 * 32 * 64 * 48);
  CHECK(flops(embedding_backward(work, a100)) == 2.0 * 32 * 64 * 48);
}

}  // namespace
}  // namespace lambcast
