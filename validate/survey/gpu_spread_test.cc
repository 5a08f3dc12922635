#include "validate/survey/gpu_spread.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "models/training/price/slowest_rank.h"
#include "sim/base/temporary_folder.h"
#include "topologies/cluster.h"
#include "validate/calibrate/calibrate.h"

namespace lambcast {
namespace {

// Writes a profile with two products that take `slower` times as long as on another GPU.
void write_profile(const TemporaryFolder& folder, int rank, double slower,
                   const std::string& gpu = "NVIDIA H100 80GB HBM3") {
  std::ofstream(folder.path() / fmt::format("rank-{:05}.toml", rank)) << fmt::format(
      "[device]\nname = '{}'\nmemory_bandwidth = '3 TB/s'\ncopy_bandwidth = '3 TB/s'\n"
      "memory_capacity = '80 GB'\nlaunch_overhead = '4 us'\npeak_half = '750 TFLOP/s'\n"
      "pageable_d2h = '11 GB/s'\npageable_h2d = '7 GB/s'\npinned_d2h = '33 GB/s'\n"
      "pinned_h2d = '54 GB/s'\n"
      "[[kernel]]\nname = 'copy'\nbytes_per_element = 8\nelements = [1048576]\n"
      "time_us = [{}]\n"
      "[[product]]\nformat = 'fp16'\nm = [4096, 8192]\nn = [4096, 4096]\nk = [4096, 4096]\n"
      "time_us = [{}, {}]\n",
      gpu, 6.5 / slower, 190 * slower, 370 * slower);
}

TEST_CASE("gpu spread: the standard deviation over GPUs of their products' times") {
  const TemporaryFolder folder;
  write_profile(folder, 0, 1);
  CHECK_FALSE(gpu_spread_of(folder.path()));
  write_profile(folder, 1, std::exp(0.03));
  write_profile(folder, 2, std::exp(-0.03));
  const auto spread = gpu_spread_of(folder.path());
  REQUIRE(spread);
  CHECK(spread->spread == Approx(0.03));
  CHECK(spread->gpus == 3);
  CHECK(spread->timed == 2);
  CHECK(spread->slowest == "rank-00001.toml");
  CHECK(spread->slowest_off == Approx(0.03));
}

TEST_CASE("gpu spread: GPUs of two kinds and a missing folder have no spread") {
  const TemporaryFolder folder;
  CHECK_FALSE(gpu_spread_of(folder.path() / "none"));
  write_profile(folder, 0, 1);
  write_profile(folder, 1, 1, "NVIDIA H200");
  CHECK_THROWS_WITH(gpu_spread_of(folder.path()),
                    Catch::Contains("rank-00001.toml") && Catch::Contains("rank-00000.toml"));
}

TEST_CASE("gpu spread: a description stores it as measured, next to its other keys") {
  const GpuSpread spread{0.012, 16, 300, "rank-00003.toml", 0.02};
  const std::string text = validate::cluster_with_gpu_spread(
      cluster_text("dgx2h-v100"), "dgx2h-v100.toml", as_measured(spread));
  const Cluster cluster = decode_cluster(Table::parse(text, "mine.toml"), "mine.toml");
  CHECK(cluster.stack.gpu_spread.value == Approx(0.012));
  CHECK(cluster.stack.gpu_spread.provenance.kind == Kind::measured);
  CHECK(cluster.stack.compute_scale == load_cluster("dgx2h-v100", {}).stack.compute_scale);
}

}  // namespace
}  // namespace lambcast
