#include "validate/replay/verdict.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "validate/replay/made_up_validation.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::string words(const Validation& validation) {
  return fmt::format("{}", fmt::join(verdict_of(validation), " "));
}

TEST_CASE("verdict: limits that are met, with fitted and unseen apart") {
  const Validation validation{made_up_training(), made_up_collectives()};
  CHECK(within(validation));
  CHECK(misses(validation).empty());
  const std::string text = words(validation);
  CHECK_THAT(text, Catch::StartsWith("Within limits"));
  CHECK_THAT(text, Contains("2 of 2 figures on 1 cluster within their own limits, median "
                            "error 3.0% (limit 4.0%), the worst -8.0% (wild, limit 10.0%)"));
  CHECK_THAT(
      text,
      Contains("1 set a parameter of their cluster, \"fitted\" (median 2.0%); 1 did "
               "not, \"unseen\" (median 8.0%). 1 of the fitted and 0 of the unseen lie inside "
               "the interval of their forecast, whose ends are 5.0% away in the "
               "median."));
  CHECK_THAT(text, Contains("4 rows in 2 tables from 2 clusters"));
  // Two rows have 12.5 % and two 25 %, so the median is the mean of the middle two.
  CHECK_THAT(text, Contains("from 2 clusters, median error 18.8% (below 64 KiB 12.5%, 4 MiB and "
                            "more 25.0%). The worst row is off by -25.0% (all_reduce of 8388608 "
                            "bytes on other-box)."));
  CHECK_THAT(text, Contains("Fitted, 1 table: median error 12.5% (below 64 KiB 12.5%)."));
  CHECK_THAT(text, Contains("Unseen, 1 table: median error 25.0% (4 MiB and more 25.0%)."));
  CHECK_THAT(text, Contains("Limits hold 2 of the 4 rows"));
  CHECK_THAT(text, Contains("worse on 1 of the 1 table it covers: its median is 50.0%, that of "
                            "these forecasts 12.5%"));
}

TEST_CASE("verdict: everything that misses its limit is named, the first five of many") {
  Validation validation{made_up_training(), made_up_collectives()};
  validation.training->results.push_back(made_up_case("off", 1.5, false, 0.1));
  validation.training->within = false;
  CHECK_FALSE(within(validation));
  CHECK_THAT(words(validation),
             Catch::StartsWith("PAST LIMITS: blog.csv, off: +50.0% (limit 10.0%)."));
  validation.training->median_error = 0.05;
  validation.collectives->limits[0].within = false;
  validation.collectives->within = false;
  const std::vector<std::string> missed = misses(validation);
  REQUIRE(missed.size() == 3);
  CHECK(missed[1] == "median of the training figures: 5.0% (limit 4.0%)");
  CHECK(missed[2] ==
        "box, below 64 KiB: median 12.5% (limit 20.0%), 90th percentile 12.5% (limit 30.0%)");
  for (int i = 0; i < 4; ++i)
    validation.training->results.push_back(made_up_case("off", 1.5, false, 0.1));
  CHECK_THAT(words(validation), Contains("; and 2 more."));
}

TEST_CASE("verdict: a log without a limit states that there was none") {
  Validation validation{std::nullopt, made_up_collectives()};
  CHECK_THAT(words(validation), Catch::StartsWith("Within limits"));
  validation.collectives->limits.clear();
  CHECK_THAT(words(validation), Catch::StartsWith("No limit was asked for"));
  CHECK_THAT(words(validation), !Contains("Training"));
}

TEST_CASE("errors over all tables: by role and band; a single role has no line of its own") {
  const std::vector<RoleErrors> roles = errors_by_role(made_up_collectives());
  REQUIRE(roles.size() == 3);
  CHECK(roles[0].role.empty());
  CHECK(roles[0].tables == 2);
  CHECK(roles[0].rows == 4);
  REQUIRE(roles[0].bands.size() == 2);  // no row is in the band from 64 KiB to 4 MiB
  CHECK(roles[0].bands[0].band == band_names[0]);
  CHECK(roles[0].bands[0].median == Approx(0.125));
  CHECK(roles[0].bands[1].band == band_names[2]);
  CHECK(roles[0].bands[1].median == Approx(0.25));
  CHECK(roles[1].role == "fitted");
  CHECK(roles[1].median == Approx(0.125));
  CHECK(roles[2].role == "unseen");
  CHECK(roles[2].median == Approx(0.25));
  CollectiveSummary one = made_up_collectives();
  one.results.pop_back();
  CHECK(errors_by_role(one).size() == 1);
  // The band names must be those of errors_by_band(): 1 KiB, 64 KiB and 4 MiB are in the three
  // bands.
  const std::vector<double> sizes = {1024, 65536, 4194304}, errors = {0.1, 0.1, 0.1};
  const auto bands = validate::errors_by_band(sizes, errors);
  REQUIRE(bands.size() == band_names.size());
  for (std::size_t i = 0; i < bands.size(); ++i) CHECK(bands[i].band == band_names[i]);
}

}  // namespace
}  // namespace lambcast
