#include "experiments/report/results.h"

#include <catch2/catch.hpp>

#include "experiments/report/figure.h"
#include "experiments/report/synthetic_sweep.h"

using namespace lambcast;
using namespace lambcast::report;
using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

TEST_CASE("results: statistics of all rows do not depend on the rows kept") {
  SyntheticSweep sweep{.clusters = {{"box", 4, 10}, {"rack", 8, 100}},
                       .optimizers = {"lamb", "onebit_lamb"},
                       .gpus = {8, 16},
                       .global_batches = {512, 8192}};  // 512 does not run on 16 GPUs
  sweep.freeze_shares.clear();
  for (int i = 1; i <= 13'000; ++i) sweep.freeze_shares.push_back(i / 17'000.0);
  const std::string text = synthetic_header() + synthetic_rows(sweep);
  const Results all = results_of(text);
  const Results part = read_results(csv::Reader::of_text(text, "results.csv"), 1 << 20);

  CHECK(all.points.size() == all.summary.points);
  CHECK(all.summary.thinning.empty());
  REQUIRE(all.summary.points > Listing::most_rows);
  REQUIRE(part.points.size() == part.listing.kept());
  CHECK(part.points.size() < all.points.size());
  for (std::size_t i = 0; i < part.points.size(); i += 101) {
    const Point& row = all.points[part.listing.kept_rows()[i]];
    CHECK(part.points[i].cluster == row.cluster);
    CHECK(part.points[i].status == row.status);
    CHECK((!row.ok() || part.points[i].run_time_s == row.run_time_s));
  }

  std::vector<std::string> said = in_words(part.summary);
  CHECK_THAT(said.back(), Contains("Counts, medians, best and worst are of all rows") &&
                              EndsWith(": " + part.listing.thinning() + "."));
  said.pop_back();
  CHECK(said == in_words(all.summary));
  CHECK(part.summary.shortest->run_time_s == all.summary.shortest->run_time_s);
  CHECK(part.summary.cost_sources == all.summary.cost_sources);
  REQUIRE(part.summary.spreads.size() == 2);
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(part.summary.spreads[i].count == all.summary.spreads[i].count);
    CHECK(part.summary.spreads[i].median == all.summary.spreads[i].median);
  }
  CHECK(part.grounds.below_percent == all.grounds.below_percent);

  for (const Figure& figure : figures_of(part.points, part.summary.thinning))
    if (figure.left_out.empty()) CHECK_THAT(figure.caption, Contains(part.summary.thinning));
}
