#include "kernels/cuda/host_copy.h"

#include "kernels/cuda/gpu_test.h"

using namespace lambcast;
using namespace lambcast::cuda;

TEST_CASE("the staged copies run in order through pageable and pinned memory") {
  NEED_GPUS(1);
  // The first copies move one chunk to the host, the next moves Np / 8 bytes back: the chunk is
  // unchanged, and the bytes after it become the initial zeros of the host buffer.
  const ChunkLayout layout = chunk_layout(100000, 8);
  for (const HostMemory kind : {HostMemory::pageable, HostMemory::pinned}) {
    const std::vector<std::uint8_t> before(layout.packed_bytes(), 7);
    const auto device = upload(before);
    const HostBuffer host(layout.packed_bytes(), kind);
    require(cuda::staging_copies(layout, host.data(), device.data(), nullptr), "staging_copies");
    const auto after = device.to_host();
    for (std::size_t i = 0; i < after.size(); ++i) {
      REQUIRE(after[i] == (i < layout.chunk_bytes() ? 7 : 0));
    }
  }
}
