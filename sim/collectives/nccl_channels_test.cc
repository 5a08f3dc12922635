// Numbers of NCCL's channels for a message, compared with its rules worked out by hand.
#include <catch2/catch.hpp>
#include <tuple>

#include "sim/collectives/nccl_tuning.h"

namespace lambcast {
namespace {

using Gpus = NcclTuning::Gpu;

TEST_CASE("NCCL's channels of a size") {
  const NcclTuning eight_nics{.nics = 8};
  const auto of = [](const NcclTuning& tuning, std::string_view protocol, bool ring, double size,
                     int nodes = 2) {
    return nccl_channels_for(tuning, protocol, ring, Bytes(size), nodes, 8);
  };
  // Simple has one channel per 32 KiB, up to the 16 available.
  CHECK(of(eight_nics, "Simple", true, 8) == 1);
  CHECK(of(eight_nics, "Simple", true, 65535) == 1);
  CHECK(of(eight_nics, "Simple", false, 65536) == 2);
  CHECK(of(eight_nics, "Simple", false, 1e9) == 16);
  // LL has one channel per 4 KiB in a tree, and per 4 KiB times 16 ranks in a ring. LL128 has one
  // per 5 KiB.
  CHECK(of(eight_nics, "LL", false, 3 * 4096) == 3);
  CHECK(of(eight_nics, "LL", true, 3 * 65536 - 1) == 2);
  CHECK(of(eight_nics, "LL", true, 3 * 65536) == 3);
  CHECK(of(eight_nics, "LL128", true, 3 * 5120) == 3);
  // A node of A100 has 24 channels, one of Hopper 16, a PCIe node 2. Rings over PCIe of generation
  // 3 use 256 threads.
  CHECK(of({}, "Simple", true, 1e9, 1) == 24);
  CHECK(of({.gpu = Gpus::hopper}, "Simple", true, 1e9, 1) == 16);
  const NcclTuning pcie{.link_GBps = 12, .nvlink = false};
  CHECK(of(pcie, "Simple", true, 32767, 1) == 1);
  CHECK(of(pcie, "Simple", true, 32768, 1) == 2);
  CHECK(of(pcie, "Simple", false, 65535, 1) == 1);
  CHECK(of(pcie, "Simple", true, 1e9, 1) == 2);
  CHECK(of({.link_GBps = 12.5, .nvlink = false}, "Simple", true, 65535, 1) == 1);
  // From Hopper on, each NIC of 400 Gbit/s gets four channels, up to 16 in total.
  CHECK(of({.gpu = Gpus::hopper, .nics = 1, .nic_GBps = 50}, "Simple", true, 1e9) == 4);
  CHECK(of({.gpu = Gpus::hopper, .nics = 8, .nic_GBps = 50}, "Simple", true, 1e9) == 16);
  CHECK(of({.gpu = Gpus::hopper, .nics = 1, .nic_GBps = 25}, "Simple", true, 1e9) == 2);
  // Fewer threads reduce the share per channel, and limits of channels apply.
  CHECK(of({.nics = 8, .threads = 128}, "Simple", true, 65536) == 8);
  CHECK(of({.nics = 8, .threads = 128}, "LL", false, 8192) == 8);
  CHECK(of({.nics = 8, .ll128_threads = 160}, "LL128", true, 3 * 5120) == 12);
  CHECK(of({.nics = 8, .max_ctas = 4}, "Simple", true, 1e9) == 4);
}

// The product of channels and heads is 24 x 8 on Blackwell, 16 x 8 on Hopper and 24 x 32 on a rack
// of 72 GPUs. On several nodes of Blackwell it is 32 x 8, on several racks 32 x 32.
TEST_CASE("NCCL's chunks of an all-reduce in the switch") {
  const auto kib = [](Gpus gpu, int nodes, int gpus, double size) {
    return size / nvls_chunks({.gpu = gpu}, Bytes(size), nodes, gpus) / 1024;
  };
  for (const auto& [gpu, gpus, at_once] :
       {std::tuple(Gpus::blackwell, 8, 192), std::tuple(Gpus::hopper, 8, 128),
        std::tuple(Gpus::blackwell, 72, 768)}) {
    const double one = at_once * 1024.0;
    CHECK(kib(gpu, 1, gpus, 1024) == Approx(16));
    CHECK(kib(gpu, 1, gpus, 64 * one - 1) == Approx(16));
    CHECK(kib(gpu, 1, gpus, 64 * one) == Approx(32));
    CHECK(kib(gpu, 1, gpus, 512 * one - 1) == Approx(32));
    CHECK(kib(gpu, 1, gpus, 512 * one) == Approx(64));
    CHECK(kib(gpu, 1, gpus, 8192 * one - 1) == Approx(64));
    CHECK(kib(gpu, 1, gpus, 8192 * one) == Approx(128));
  }
  for (const auto& [gpus, at_once] : {std::pair(8, 256), std::pair(72, 1024)}) {
    const double one = at_once * 1024.0;
    CHECK(kib(Gpus::blackwell, 2, gpus, 64 * one - 1) == Approx(32));
    CHECK(kib(Gpus::blackwell, 2, gpus, 64 * one) == Approx(64));
    CHECK(kib(Gpus::blackwell, 3, gpus, 512 * one - 1) == Approx(64));
    CHECK(kib(Gpus::blackwell, 3, gpus, 512 * one) == Approx(128));
    CHECK(kib(Gpus::blackwell, 4, gpus, 512 * one) == Approx(64));
  }
}

}  // namespace
}  // namespace lambcast
