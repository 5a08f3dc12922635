#include "experiments/convergence/paired.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast::convergence {
namespace {

using Catch::Matchers::Contains;

// The differences 0.02 and 0.04 have mean 0.03, deviation 0.01 sqrt(2) and standard error 0.01. The
// plain losses differ by 0.2. The second batch has a single draw, which resolves nothing.
TEST_CASE("paired: the mean difference of draws and its spread, batch by batch") {
  const std::vector<Pair> pairs{
      {"a", 1, 0, 2.02, 2.0}, {"a", 1, 1, 2.24, 2.2}, {"a", 2, 0, 1.9, 1.8}};
  const auto all = paired_differences(pairs);
  REQUIRE(all.size() == 2);
  CHECK(all[0].draws == 2);
  CHECK(all[0].mean == Approx(0.03));
  CHECK(all[0].deviation == Approx(0.01 * std::sqrt(2)));
  CHECK(all[0].plain_deviation == Approx(0.1 * std::sqrt(2)));
  CHECK(all[0].is_resolved());
  CHECK(all[1].mean == Approx(0.1));
  CHECK_FALSE(all[1].is_resolved());
  CHECK_THAT(paired_table(all, 4), Contains("+0.0300   0.0141       0.1414\n") &&
                                       Contains("+0.1000   0.0000       0.0000  not resolved"));
  CHECK_THAT(pairs_csv(pairs), Contains("a,1,1,2.24,2.2\n"));
}

// Each draw has its own weights and sequences; a plain run is paired with itself.
TEST_CASE("paired: a pair shares its draw, and draws differ") {
  Recipe recipe;
  recipe.steps = 8;
  recipe.every = 2;
  recipe.lr_warmup = 2;
  const std::vector<Run> runs{{Optimizer::lamb, Exchange::plain},
                              {Optimizer::lamb, Exchange::int4}};
  const int sequences[] = {1};
  const auto pairs = train_pairs(recipe, runs, sequences, 2, 2);
  REQUIRE(pairs.size() == 4);
  CHECK(pairs[0].difference() == 0);
  CHECK(pairs[1].difference() == 0);
  CHECK(pairs[0].loss != pairs[1].loss);
  CHECK(pairs[2].plain_loss == pairs[0].loss);
  CHECK(pairs[2].loss != pairs[2].plain_loss);
}

}  // namespace
}  // namespace lambcast::convergence
