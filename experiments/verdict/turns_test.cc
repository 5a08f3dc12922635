#include "experiments/verdict/turns.h"

#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Places = std::vector<std::size_t>;

TEST_CASE("turns: the extremes of a curve, without those of rounding") {
  CHECK(turns_of(std::vector<double>{}).empty());
  CHECK(turns_of(std::vector<double>{1}).empty());
  CHECK(turns_of(std::vector<double>{1, 2, 3, 4}).empty());
  CHECK(turns_of(std::vector<double>{4, 4, 2, 1}).empty());
  CHECK(turns_of(std::vector<double>{1, 2, 3, 2, 1}) == Places{2});
  CHECK(turns_of(std::vector<double>{1, 3, 2, 5}) == Places{1, 2});
  CHECK(turns_of(std::vector<double>{1, 2, 1.9999, 3}).empty());
}

TEST_CASE("turns: a change below one percent of the largest value does not count") {
  CHECK(turns_of(std::vector<double>{1, 0.999, 1}).empty());
  CHECK(turns_of(std::vector<double>{1, 0.992, 1}).empty());
  CHECK(turns_of(std::vector<double>{1, 0.98, 1}) == Places{1});
}

TEST_CASE("turns: a curve over GPUs is named at its steepest turn, for any order of runs") {
  StepsOverGpus cliff{"", {512, 384, 456, 640}, {0.4319, 0.836, 0.8451, 0.4320}};
  cliff.sort();
  CHECK(cliff.gpus == std::vector<double>{384, 456, 512, 640});
  const StepsOverGpus falling{"", {8, 16, 32}, {3, 2, 1}};
  CHECK(turns_text(std::vector{falling}).empty());
  CHECK_THAT(
      turns_text(std::vector{falling, cliff}),
      Catch::StartsWith("A step is not monotone in GPUs: 845.1 ms at 456, 431.9 ms at 512."));
  cliff.of = "batch 16";
  CHECK_THAT(turns_text(std::vector(5, cliff)),
             Contains("at 512 (batch 16); 845.1 ms") && Contains("; 2 more such curves."));
}

}  // namespace
}  // namespace lambcast
