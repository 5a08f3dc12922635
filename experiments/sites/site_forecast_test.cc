#include "experiments/sites/site_forecast.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <ctime>
#include <nlohmann/json.hpp>

#include "experiments/output/mean_step.h"
#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"
#include "sim/base/json.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

const WhatIf bert{{"model", "bert-large"},
                  {"optimizer", "adam"},
                  {"global_batch", "512"},
                  {"micro_batch", "16"},
                  {"steps", "100"}};

std::string description(const std::string& wan, const std::string& sites) {
  return "name = \"test\"\n[wan]\nup = \"1 Gbit/s\"\nrtt = \"20 ms\"\n" + wan + sites;
}
std::string site(const std::string& name, const std::string& further = {}) {
  return "[[site]]\nname = \"" + name + "\"\ncluster = \"commodity-10gbe\"\ngpus = 8\n" + further;
}

SiteForecast forecast_text(const std::string& text, const OuterChoice& choice = {},
                           WhatIf what_if = bert) {
  const TemporaryFolder folder;
  what_if["cluster"] = folder.file("sites.toml", text);
  Catalog catalog;
  return forecast_sites(what_if, choice, catalog);
}

double plain_step_s() {
  WhatIf asked = bert;
  asked["cluster"] = "commodity-10gbe";
  asked["gpus"] = "8";
  Catalog catalog;
  CollectiveCosts costs;
  return mean_step(forecast_alone(resolve(asked, catalog).training, costs)).time_us * 1e-6;
}

TEST_CASE("site forecast: --set wan.KEY changes the description of the sites") {
  const std::string two = site("a") + site("b");
  WhatIf faster = bert;
  faster["wan.rtt"] = "5 ms";
  const SiteForecast set = forecast_text(description("", two), {}, faster);
  CHECK(set.group.sites.front().link.rtt.value == Duration::seconds(0.005));
  CHECK(set.round.exposed < forecast_text(description("", two)).round.exposed);
  faster["wan.rate"] = "5 ms";
  CHECK_THROWS_WITH(forecast_text(description("", two), {}, faster), Contains("--set wan.rate"));
}

TEST_CASE("site forecast: one site is the plain cluster") {
  const SiteForecast one = forecast_text(description("", site("a")));
  CHECK(one.sites.front().step.s() == Approx(plain_step_s()).epsilon(1e-6));
  CHECK(one.round.exposed == Duration());
  CHECK(one.round.utilisation == 1);
  CHECK(one.samples_per_s == Approx(512 / plain_step_s()).epsilon(1e-6));
}

TEST_CASE("site forecast: two sites follow the closed form") {
  const SiteForecast two =
      forecast_text(description("usd_per_gb = 0.1\n", site("a", "count = 2\n")));
  // In a ring of two, each weight is sent once, with 16 bits at 1 Gbit/s, after one round trip.
  const double transfer = two.exchange.weights * 16 / 1e9 + 0.02;
  const double compute = 100 * plain_step_s();
  CHECK(two.round.exposed.s() == Approx(transfer).epsilon(1e-6));
  CHECK(two.round.utilisation == Approx(compute / (compute + transfer)).epsilon(1e-6));
  CHECK(two.samples_per_s == Approx(2 * 512 * 100 / (compute + transfer)).epsilon(1e-6));
  const double dollars = 2 * two.exchange.weights * 2e-9 * 0.1 * 86400 / (compute + transfer);
  REQUIRE(two.egress_usd_per_day());
  CHECK(*two.egress_usd_per_day() == Approx(dollars).epsilon(1e-6));
  // 100 steps are one round.
  CHECK(two.run_s.mean == Approx(compute + transfer).epsilon(1e-6));
  CHECK(two.low.utilisation <= two.round.utilisation);
  CHECK(two.high.utilisation >= two.round.utilisation);
}

TEST_CASE("site forecast: a slow site is waited for, and left out by a quorum") {
  const std::string text = description("", site("a", "count = 2\n") + site("b", "slow = 1.3\n"));
  const SiteForecast all = forecast_text(text);
  CHECK(all.round.compute.s() == Approx(130 * plain_step_s()).epsilon(1e-6));
  const SiteForecast two = forecast_text(text, {.quorum = 2});
  CHECK(two.round.compute.s() == Approx(100 * plain_step_s()).epsilon(1e-6));
  CHECK(two.round.members.size() == 2);
}

TEST_CASE("site forecast: failures lengthen the run by their expected number") {
  const std::string sites = site("a", "count = 2\nmtbf = \"1 h\"\noutage = \"5 min\"\n");
  WhatIf asked = bert;
  asked["steps"] = "10000";
  const SiteForecast plain = forecast_text(description("", site("a", "count = 2\n")), {}, asked);
  const SiteForecast failing = forecast_text(description("", sites), {}, asked);
  const double undone = failing.round.time().s() / 2;
  CHECK(plain.failures.mean == 0);
  CHECK(failing.failures.mean == Approx(2 * plain.run_s.mean / 3600).epsilon(1e-6));
  CHECK(failing.run_s.mean ==
        Approx(plain.run_s.mean + failing.failures.mean * (300 + undone)).epsilon(1e-6));
  CHECK(failing.run_s.low < failing.run_s.mean);
  CHECK(failing.run_s.high > failing.run_s.mean);
  CHECK_THAT(site_forecast_table(failing), Contains("in the run ("));
}

TEST_CASE("site forecast: a run has the exchanges that it reaches, and names too few") {
  const auto run_of = [](const char* steps, int fragments) {
    WhatIf asked = bert;
    asked["steps"] = steps;
    return forecast_text(description("usd_per_gb = 0.1\n", site("a", "count = 2\n")),
                         {.fragments = fragments}, asked);
  };
  const auto finds = [](const SiteForecast& forecast, const char* code) {
    return std::ranges::count(forecast.findings, code, &Finding::code) == 1;
  };
  const SiteForecast none = run_of("99", 1);
  CHECK(none.run_s.mean == Approx(99 * plain_step_s()).epsilon(1e-6));
  CHECK(*none.egress_usd == 0);
  CHECK(finds(none, "exchange-never"));
  CHECK_THAT(site_forecast_table(none),
             Catch::StartsWith("The run of 99 steps ends before its first exchange; longer runs") &&
                 Catch::Contains("a round, none in this run\n"));
  const double transfer = none.round.exposed.s();
  const SiteForecast two = run_of("250", 1);
  CHECK(two.run_s.mean == Approx(250 * plain_step_s() + 2 * transfer).epsilon(1e-6));
  CHECK(*two.egress_usd == Approx(2 * two.egress.value() * 1e-10));
  CHECK(finds(two, "exchange-seldom"));
  // One of four fragments is sent every 25 steps: ten in 250 steps, or all weights 2.5 times.
  CHECK(*run_of("250", 4).egress_usd == Approx(2.5 * two.egress.value() * 1e-10));
  const SiteForecast ten = run_of("1000", 1);
  CHECK(!finds(ten, "exchange-never"));
  CHECK(!finds(ten, "exchange-seldom"));
}

TEST_CASE("site forecast: a slow site costs throughput") {
  const std::string text = description("", site("a", "count = 2\n") + site("b", "slow = 3\n"));
  const SiteForecast plain = forecast_text(text), slow = forecast_text(text, {.slow = {"2:2"}});
  CHECK(slow.samples_per_s == Approx(plain.samples_per_s));
  CHECK(slow.round.utilisation == Approx(plain.round.utilisation));
  CHECK_THAT(site_forecast_table(plain), Contains(" The pace of b costs "));
  const SiteForecast all = forecast_text(text, {.slow = {"3:2"}});
  CHECK(all.round.utilisation / plain.round.utilisation ==
        Approx(all.samples_per_s / plain.samples_per_s));
}

TEST_CASE("site forecast: the transfer waits for a slower pair of sites, which is listed") {
  const std::string pair =
      "[[wan.pair]]\nsites = [\"a-1\", \"a-2\"]\nrate = \"100 Mbit/s\"\nrtt = \"70 ms\"\n";
  const SiteForecast two = forecast_text(description("", site("a", "count = 2\n") + pair));
  CHECK(two.round.transfer.s() == Approx(two.weights * 16 / 1e8 + 0.07).epsilon(1e-6));
  CHECK_THAT(site_forecast_table(two), Contains("a-1 and a-2") && Contains("100 Mbit/s") &&
                                           Contains("the slowest pair of sites has 100 Mbit/s"));
}

TEST_CASE("site forecast: decoupled sites keep their own pace") {
  const std::string text = description("", site("a", "count = 2\n") + site("b", "slow = 2\n"));
  const OuterChoice coupled{.codec = "int4", .every = 24, .fragments = 24, .delay = 2};
  OuterChoice decoupled = coupled;
  decoupled.decoupled = true;
  const SiteForecast together = forecast_text(text, coupled),
                     alone = forecast_text(text, decoupled);
  // In the time of a fast step: 1 + 1 + 1/2 batches if decoupled, 3/2 if coupled.
  CHECK(alone.samples_per_s / together.samples_per_s == Approx(2.5 / 1.5).epsilon(1e-3));
}

TEST_CASE("site forecast: --slow is the description's slow, by name or for a number of sites") {
  const std::string plain = description("", site("a", "count = 3\n"));
  const SiteForecast by_file =
      forecast_text(description("", site("a-1", "slow = 1.3\n") + site("b", "count = 2\n")));
  const SiteForecast by_name = forecast_text(plain, {.slow = {"a-1:1.3"}}),
                     by_number = forecast_text(plain, {.slow = {"1:1.3"}});
  CHECK(by_name.round.time() == by_file.round.time());
  CHECK(by_number.round.time() == by_file.round.time());
  CHECK(by_name.sites[0].step == by_name.sites[1].step.scaled(1.3));
  // Two of three sites are slow, one of them twice.
  const SiteForecast twice = forecast_text(plain, {.slow = {"2:1.3", "a-1:2"}});
  CHECK(twice.sites[0].step == by_name.sites[1].step.scaled(2.6));
  CHECK(twice.sites[1].step == by_name.sites[1].step.scaled(1.3));
  for (const char* wrong : {"a-1", "a-1:", "a-1:0.5", "a-1:2x", "c:2", "0:2", ":2", "1:1e9"})
    CHECK_THROWS_WITH(forecast_text(plain, {.slow = {wrong}}),
                      Contains("--slow") && Contains(wrong) && Contains("a-1"));
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// 16 islands of 65,536 GPUs with one failure per GPU and year: each island fails every 8 minutes.
TEST_CASE("site forecast: a million GPUs in 16 islands with failures take less than 10 s") {
  const std::string island =
      "[[site]]\nname = \"island\"\ncluster = \"hgx-h100-ndr\"\ngpus = 65536\ncount = 16\n"
      "up = \"100 Gbit/s\"\nmtbf = \"8 min\"\noutage = \"2 min\"\n";
  const WhatIf asked{{"model", "llama3-70b"},
                     {"framework", "megatron"},
                     {"tp", "8"},
                     {"pp", "8"},
                     {"zero_stage", "1"},
                     {"precision", "bf16"},
                     {"micro_batch", "1"},
                     {"global_batch", "16384"},
                     {"optimizer", "adamw"},
                     {"steps", "1000"}};
  const auto start = std::chrono::steady_clock::now();
  const SiteForecast run = forecast_text(
      description("", island),
      {.codec = "int4", .every = 24, .fragments = 24, .delay = 2, .decoupled = true}, asked);
  CHECK(seconds_since(start) < 10);
  CHECK(run.round.utilisation > 0.5);
  CHECK(run.round.utilisation < 0.9);
  CHECK(run.failures.low > 0);
  CHECK(run.round.training.low < 16);
}

TEST_CASE("site forecast: 10,000 exchanges of unlike sites with a matrix take less than a second") {
  constexpr int count = 12;
  std::string sites, rates = "[wan.rates]\n";
  for (int i = 0; i < count; ++i) {
    sites += site(fmt::format("s{}", i), fmt::format("slow = {}\n", 1 + 0.1 * i));
    rates += fmt::format("s{} = [", i);
    for (int j = 0; j < count; ++j) rates += fmt::format("\"{} Gbit/s\", ", 1 + (i + j) % 5);
    rates += "]\n";
  }
  const SiteForecast unlike = forecast_text(description(rates, sites));
  CHECK(unlike.group.pairs.size() == count * (count - 1) / 2);
  CHECK_THAT(site_forecast_table(unlike), Contains("66 pairs of sites: 1 Gbit/s"));
  const std::clock_t start = std::clock();  // CPU time: tests share the processor
  constexpr int repeats = 20;
  CHECK(repeats * count * unlike.options.size() > 10'000);
  for (int i = 0; i < repeats; ++i)
    for (const OuterOption& option : unlike.options)
      CHECK(round_with(unlike, option.exchange).utilisation == option.round.utilisation);
  CHECK(std::clock() - start < CLOCKS_PER_SEC);
}

TEST_CASE("site forecast: all exchanges of 250 sites are forecast in less than a second") {
  const SiteForecast many = forecast_text(description("", site("a", "count = 250\n")));
  const auto start = std::chrono::steady_clock::now();
  for (const OuterOption& option : many.options)
    CHECK(round_with(many, option.exchange).utilisation == option.round.utilisation);
  CHECK(many.options.size() * many.sites.size() > 10'000);
  CHECK(seconds_since(start) < 1);
}

TEST_CASE("site forecast: the fewest steps and the stated bandwidth keep 95 % for compute") {
  const SiteForecast two = forecast_text(description("", site("a", "count = 2\n")));
  REQUIRE(two.fewest_steps);
  for (const OuterOption& option : two.options)
    if (option.exchange.codec.name == two.exchange.codec.name)
      CHECK((option.round.utilisation >= 0.95) == (option.exchange.every >= *two.fewest_steps));
  REQUIRE(two.for_95_percent);
  const std::string up = std::to_string(two.for_95_percent->value() * 8e-9) + " Gbit/s";
  const SiteForecast there =
      forecast_text("name = \"test\"\n[wan]\nup = \"" + up +
                    "\"\nrtt = \"20 ms\"\nstreams = 1000\n" + site("a", "count = 2\n"));
  CHECK(there.round.utilisation == Approx(0.95).epsilon(1e-4));
}

TEST_CASE("site forecast: keys of sites and exchanges inside them are refused") {
  const std::string text = description("", site("a", "count = 2\n"));
  WhatIf asked = bert;
  asked["gpus"] = "8";
  CHECK_THROWS_WITH(forecast_text(text, {}, asked), Contains("--gpus"));
  asked = bert;
  asked["exchange"] = "local:16";
  CHECK_THROWS_WITH(forecast_text(text, {}, asked), Contains("--every"));
  CHECK_THROWS_WITH(forecast_text(text, {.codec = "int7"}), Contains("--codec"));
  Catalog catalog;
  CHECK_THROWS_WITH(forecast_sites(bert, {}, catalog), Contains("two-regions"));
  asked = bert;
  asked["cluster"] = "two-region";
  CHECK_THROWS_WITH(forecast_sites(asked, {}, catalog), Contains("did you mean 'two-regions'"));
}

TEST_CASE("site forecast: table, JSON and CSV have the same numbers") {
  const SiteForecast two = forecast_text(description("", site("a", "count = 2\n")));
  const Json json = parse_json(site_forecast_json(two));
  CHECK(json["utilisation"].get<double>() == two.round.utilisation);
  CHECK(json["sites"].size() == 2);
  CHECK(json["options"].size() == two.options.size());
  CHECK_THAT(site_forecast_table(two), Contains(json["answer"].get<std::string>()));
  const std::string csv = site_forecast_csv(two);
  CHECK(static_cast<std::size_t>(std::count(csv.begin(), csv.end(), '\n')) ==
        two.options.size() + 1);
}

TEST_CASE("site forecast: the answer begins with sites whose memory is too small") {
  const std::string text = description("", site("a", "count = 2\n"));
  WhatIf asked = bert;
  CHECK_THAT(site_forecast_table(forecast_text(text, {}, asked)), !Contains("Does not fit"));
  asked["micro_batch"] = "4096";
  asked["global_batch"] = "32768";
  CHECK_THAT(site_forecast_table(forecast_text(text, {}, asked)),
             StartsWith("Does not fit in memory at 2 of 2 sites. "));
}

}  // namespace
}  // namespace lambcast
