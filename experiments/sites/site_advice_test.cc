#include "experiments/sites/site_advice.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

SiteAdvice advice_for(const std::string& sites) {
  Catalog catalog;
  return advise_sites({{"cluster", sites},
                       {"model", "llama2-7b"},
                       {"framework", "torchtitan"},
                       {"zero_stage", "3"},
                       {"precision", "bf16"},
                       {"optimizer", "adamw"},
                       {"global_batch", "256"},
                       {"micro_batch", "1"},
                       {"recompute", "full"},
                       {"steps", "1000"}},
                      catalog);
}

TEST_CASE("site advice: it fits a screen of 24 lines and 80 columns") {
  for (const std::string& sites : site_group_names()) {
    std::istringstream lines(site_advice_table(advice_for(sites)));
    std::string line;
    int count = 0;
    for (; std::getline(lines, line); ++count) {
      INFO(sites << ": " << line);
      CHECK(line.size() <= 80);
    }
    CHECK(count <= 24);
  }
}

TEST_CASE("site advice: the advised method has the fewest steps, and keeps 95 %") {
  const SiteAdvice advice = advice_for("two-data-centres");
  REQUIRE(advice.best);
  const AdvisedMethod& best = advice.methods[*advice.best];
  for (const AdvisedMethod& method : advice.methods)
    if (method.fewest_steps) CHECK(*method.fewest_steps >= *best.fewest_steps);
  CHECK(advice.forecast.round.utilisation >= 0.95);
  // All shipped groups of sites: the exchange leaves 95 % of a site's own time for compute.
  for (const std::string& sites : site_group_names()) {
    const SiteAdvice of = advice_for(sites);
    CHECK(of.best.has_value());
    CHECK(of.forecast.round.kept >= 0.95);
  }
  CHECK(advice.forecast.exchange.every == *best.fewest_steps);
}

TEST_CASE("site advice: the least egress and unknown prices are named") {
  const std::string unpriced = site_advice_table(advice_for("two-data-centres"));
  CHECK_THAT(unpriced, Contains("Least of these: INTELLECT-1 (int8) every 300 steps"));
  CHECK_THAT(unpriced, !Contains("0.00") && !Contains(", - USD"));
  CHECK_THAT(site_advice_table(advice_for("three-continents")),
             Contains("slowest pair 10 Gbit/s") && Contains("Least of these: SparseLoCo"));
  const TemporaryFolder folder;
  const std::string one =
      "name = \"one\"\n[wan]\nup = \"1 Gbit/s\"\nrtt = \"20 ms\"\n"
      "[[site]]\nname = \"a\"\ncluster = \"dgx-a100-80g\"\ngpus = 64\n";
  CHECK_THROWS_WITH(advice_for(folder.file("one.toml", one)), Contains("second [[site]]"));
}

TEST_CASE("site advice: a method keeps 95 % at the bandwidth that is stated for it") {
  const SiteAdvice advice = advice_for("two-data-centres");
  for (const AdvisedMethod& row : advice.methods) {
    if (!row.for_95_percent) continue;
    SiteForecast forecast = advice.forecast;
    for (Site& site : forecast.group.sites) {
      site.link.up.value = site.link.down.value = *row.for_95_percent;
      site.link.streams = 1 << 16;
    }
    const OuterRound round = round_with(forecast, exchange_of(row.method.choice, forecast));
    INFO(row.method.name << " " << row.method.choice.codec);
    CHECK(round.kept == Approx(0.95).epsilon(1e-3));
  }
}

}  // namespace
}  // namespace lambcast
