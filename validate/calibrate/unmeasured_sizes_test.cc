#include "validate/calibrate/unmeasured_sizes.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

#include "validate/calibrate/made_up_machine.h"

namespace lambcast::validate {
namespace {

constexpr double KiB = 1024, MiB = 1024 * KiB, GiB = 1024 * MiB;

Measurement between(double from, double to, int nodes = 2) {
  return made_up(Operation::all_reduce, nodes, 4, 0, 1, from, to);
}

std::vector<double> sizes_of(const std::vector<Measurement>& tables) {
  std::vector<double> sizes;
  for (const UnmeasuredSize& each : unmeasured_sizes(true_cluster(), tables, Backend::nccl))
    sizes.push_back(each.size.value());
  return sizes;
}

TEST_CASE("unmeasured sizes: one size for every factor of four beyond twice the measured range") {
  // The tables cover 24 KiB to 12 MiB; 16 KiB and 16 MiB are within a factor of two of that.
  CHECK(sizes_of({between(24 * KiB, 12 * MiB)}) ==
        std::vector<double>{KiB, 4 * KiB, 64 * MiB, 256 * MiB, GiB});
  CHECK(sizes_of({between(32 * KiB, 8 * MiB)}) ==
        std::vector<double>{KiB, 4 * KiB, 16 * KiB, 16 * MiB, 64 * MiB, 256 * MiB, GiB});
  CHECK(sizes_of({between(KiB, GiB)}).empty());
  // A size in one table counts as measured for all tables.
  CHECK(sizes_of({between(KiB, KiB), between(GiB, GiB, 4)}).empty());
}

TEST_CASE("unmeasured sizes: the rows of several tables together have the weight of one table") {
  const std::vector<Measurement> four{between(MiB, GiB, 1), between(MiB, GiB, 2),
                                      between(MiB, GiB, 4), between(MiB, GiB, 8)};
  std::map<double, double> one;
  for (const UnmeasuredSize& each :
       unmeasured_sizes(true_cluster(), std::vector{four[1]}, Backend::nccl)) {
    CHECK(each.sigma > 0);
    CHECK(each.forecast > Duration());
    one[each.size.value()] = each.sigma;
  }
  CHECK(one.size() == 5);  // 1 KiB to 256 KiB
  int found = 0;
  for (const UnmeasuredSize& each : unmeasured_sizes(true_cluster(), four, Backend::nccl)) {
    if (each.table != 1) continue;
    ++found;
    CHECK(each.sigma == Approx(std::sqrt(4.) * one.at(each.size.value())));
  }
  CHECK(found == 5);
}

}  // namespace
}  // namespace lambcast::validate
