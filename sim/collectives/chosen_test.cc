#include "sim/collectives/chosen.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

// Returns the smallest power of two, in KiB from 1 on, at which NCCL rates Simple better than LL.
double leaves_ll(NcclTuning tuning, Op op, int nodes, int local) {
  tuning.ll128 = false;
  const auto best = [&](bool simple, double size) {
    tuning.simple = simple;
    tuning.ll = !simple;
    return nccl_choices(tuning, op, Bytes(size), nodes, local).front().time;
  };
  double size = 1024;
  while (best(false, size) <= best(true, size)) size *= 2;
  return size / 1024;
}

// Sizes at which the times of Perlmutter's tables jump or bend, from one node to eight nodes of
// four A100. The site used 2.18; later releases, in which LL gets twice the share, would leave LL
// one size later.
TEST_CASE("NCCL leaves LL at the sizes where tables of 2.18 jump") {
  NcclTuning perlmutter{.minor = 18, .gpus_per_node = 4, .mesh = true, .amd = true, .nics = 4};
  CHECK(leaves_ll(perlmutter, Op::all_gather, 1, 4) == 2048);
  CHECK(leaves_ll(perlmutter, Op::all_gather, 8, 4) == 8192);
  CHECK(leaves_ll(perlmutter, Op::all_gather, 2, 2) == 512);
  CHECK(leaves_ll(perlmutter, Op::all_gather, 4, 2) == 1024);
  CHECK(leaves_ll(perlmutter, Op::reduce_scatter, 8, 2) == 2048);
  CHECK(leaves_ll(perlmutter, Op::reduce_scatter, 8, 1) == 1024);
  CHECK(leaves_ll(perlmutter, Op::all_reduce, 1, 4) == 1024);
  CHECK(leaves_ll(perlmutter, Op::all_reduce, 2, 1) == 512);
  CHECK(leaves_ll(perlmutter, Op::all_reduce, 8, 4) == 512);
  perlmutter.minor = 28;
  CHECK(leaves_ll(perlmutter, Op::all_gather, 4, 2) == 2048);
  CHECK(leaves_ll(perlmutter, Op::reduce_scatter, 8, 2) == 4096);
  CHECK(leaves_ll(perlmutter, Op::all_reduce, 2, 1) == 1024);
}

TEST_CASE("NCCL's estimates are close in half of the cases in which releases choose differently") {
  int otherwise = 0, close = 0;
  const auto of = [](int minor, double size, int nodes, int local) {
    return nccl_choices(
        {.minor = minor, .gpus_per_node = 4, .mesh = true, .amd = true, .nics = 4, .ll128 = false},
        Op::all_reduce, Bytes(size), nodes, local);
  };
  for (const int minor : {12, 14, 18, 19, 21})
    for (const int local : {1, 2, 4})
      for (const int nodes : {2, 4, 8})
        for (double size = 32768; size <= 0x1p33; size *= 2) {
          const auto newest = of(NcclTuning::newest, size, nodes, local);
          if (of(minor, size, nodes, local)[0].algorithm == newest[0].algorithm) continue;
          ++otherwise;
          close += newest[1].time <= newest[0].time.scaled(near_tip) ? 1 : 0;
        }
  CHECK(otherwise == 82);
  CHECK(close == 42);
}

}  // namespace
}  // namespace lambcast
