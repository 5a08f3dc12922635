#include "kernels/staging.h"

#include <catch2/catch.hpp>

#include "kernels/exchange_bytes.h"

using namespace lambcast;

TEST_CASE("the MPI path stages twice the signs down and three times up") {
  // BERT-Large on 128 ranks: Np / 8 = 41,900,032 bytes; 84 MB down, 126 MB up.
  const ChunkLayout layout = chunk_layout(335184706, 128);
  std::size_t down = 0, up = 0;
  int copies = 0;
  for (const StagingCopy& copy : staging_copies(layout).copies()) {
    const auto times = static_cast<std::size_t>(copy.times);
    (copy.to_host ? down : up) += times * copy.bytes;
    copies += copy.times;
  }
  const std::size_t scales = 2 * (4 + 4 * 128);
  CHECK(down == 2 * layout.packed_bytes() + layout.chunk_bytes() + scales);
  CHECK(up == 3 * layout.packed_bytes() + layout.chunk_bytes() + scales);
  // (n + 2) + 4 copies down and (n + 3) + 4 up.
  CHECK(copies == (128 + 2) + 4 + (128 + 3) + 4);
  CHECK(staging_bytes(layout) == layout.packed_bytes());
}

TEST_CASE("a staging buffer has room for the scales of all ranks if they exceed the signs") {
  CHECK(staging_bytes(chunk_layout(1, 8)) == 4 * 8);
  CHECK(staging_bytes(chunk_layout(10000, 8)) == 10048 / 8);
}

TEST_CASE("elements of models beyond 4 billion parameters are counted exactly") {
  // GPT-3, 174.6e9 parameters on 1024 ranks: units of 1024 * lcm(1024, 8) = 1,048,576 elements, of
  // which 166,512 hold 174,600,486,912.
  const ChunkLayout layout = chunk_layout(174'600'000'000, 1024);
  CHECK(layout.padded == 174'600'486'912);
  CHECK(layout.chunk == 174'600'486'912 / 1024);
  CHECK(staging_bytes(layout) == 174'600'486'912 / 8);
  // 10e9 elements in fp32 on 4 ranks: 2 * 3 chunks of 2.5e9 * 4 bytes.
  CHECK(plain_allreduce_bytes(10'000'000'000, 4, WireFormat::fp32) == 60'000'000'000);
}
