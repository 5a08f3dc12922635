#include "topologies/sites/site_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const std::string head = "name = \"pair\"\n[wan]\nup = \"1 Gbit/s\"\nrtt = \"20 ms\"\n";
const std::string two = "[[site]]\nname = \"a\"\ncluster = \"x\"\ngpus = 8\ncount = 2\n";

SiteGroup decoded(const std::string& text) { return decode_sites(Table::parse(text, "pair.toml")); }

TEST_CASE("sites: presets load, and each number has a source") {
  REQUIRE(site_group_names().size() >= 4);
  for (const std::string& name : site_group_names()) {
    const SiteGroup group = load_sites(name);
    CHECK(group.name == name);
    CHECK(group.sites.size() >= 2);
    for (const Site& site : group.sites)
      for (const Provenance& from :
           {site.link.up.provenance, site.link.down.provenance, site.link.rtt.provenance})
        CHECK(from.source.find(".toml") == std::string::npos);
  }
}

TEST_CASE("sites: stating a default value changes nothing") {
  const SiteGroup plain = decoded(head + two);
  const SiteGroup stated = decoded(head +
                                   "down = \"1 Gbit/s\"\njitter = \"0 s\"\nstreams = 16\nwindow = "
                                   "\"16 MiB\"\nvia = \"direct\"\n" +
                                   two + "slow = 1.0\nup = \"1 Gbit/s\"\n");
  REQUIRE(plain.sites.size() == 2);
  CHECK(plain.sites[1].name == "a-2");
  for (std::size_t i = 0; i < 2; ++i) {
    CHECK(stated.sites[i].link.up.value == plain.sites[i].link.up.value);
    CHECK(stated.sites[i].link.down.value == plain.sites[i].link.down.value);
    CHECK(stated.sites[i].link.window.value == plain.sites[i].link.window.value);
    CHECK(stated.sites[i].link.streams == plain.sites[i].link.streams);
    CHECK(stated.sites[i].outage.value == plain.sites[i].outage.value);
    CHECK(stated.sites[i].slow.value == plain.sites[i].slow.value);
  }
  CHECK(stated.via == plain.via);
}

TEST_CASE("sites: TCP moves a window per round trip and stream") {
  SiteLink link;
  link.window.value = Bytes(16 * 0x1p20);
  link.rtt.value = Duration::seconds(0.07);
  link.streams = 1;
  // 16 MiB are 134.2 Mbit, sent once per 70 ms.
  CHECK(reached_rate(link, Bandwidth(1e12)).value() * 8 == Approx(1.917e9).epsilon(1e-3));
  link.streams = 4;
  CHECK(reached_rate(link, Bandwidth(1e12)).value() * 8 == Approx(7.67e9).epsilon(1e-3));
  CHECK(reached_rate(link, Bandwidth(1e8)) == Bandwidth(1e8));
  link.rtt.value = Duration();
  CHECK(reached_rate(link, Bandwidth(1e12)) == Bandwidth(1e12));
}

TEST_CASE("sites: a matrix is the pairs of all sites, at the slower direction") {
  const std::string three =
      "[[site]]\nname = \"a\"\ncluster = \"x\"\ngpus = 8\ncount = 2\n"
      "[[site]]\nname = \"b\"\ncluster = \"x\"\ngpus = 8\nrtt = \"70 ms\"\n";
  const auto pair = [](const char* sites, const char* rate) {
    return fmt::format("[[wan.pair]]\nsites = {}\nrate = \"{} Gbit/s\"\n", sites, rate);
  };
  const std::string rates =
      "[wan.rates]\na-1 = [\"-\", \"3 Gbit/s\", \"4 Gbit/s\"]\n"
      "a-2 = [\"2 Gbit/s\", \"\", \"5 Gbit/s\"]\nb = [\"6 Gbit/s\", \"5 Gbit/s\", \"-\"]\n";
  const auto same = [](const SitePair& one, const SitePair& other) {
    return one.a == other.a && one.b == other.b && one.rate.value == other.rate.value &&
           one.rtt.value == other.rtt.value;
  };
  const SiteGroup matrix = decoded(head + rates + three);
  const SiteGroup listed =
      decoded(head + pair("[\"a-1\", \"a-2\"]", "2") + pair("[\"a-1\", \"b\"]", "4") +
              pair("[\"a-2\", \"b\"]", "5") + three);
  CHECK(std::ranges::equal(matrix.pairs, listed.pairs, same));
  const std::string rtts =
      "[wan.rtts]\na-1 = [\"-\", \"1 ms\", \"2 ms\"]\na-2 = [\"3 ms\", \"-\", \"4 ms\"]\n"
      "b = [\"5 ms\", \"4 ms\", \"-\"]\n";
  const SiteGroup trips = decoded(head + rates + rtts + three);
  CHECK(trips.pairs[0].rtt.value == Duration::seconds(0.003));
  CHECK(trips.pairs[1].rtt.value == Duration::seconds(0.005));
  CHECK_THROWS_WITH(decoded(head + rtts + three), Contains("wan.rtts") && Contains("[wan.rates]"));
  CHECK_THROWS_WITH(decoded(head + rates + two), Contains("3 values for 2 sites"));
  CHECK_THROWS_WITH(decoded(head + "via = \"store\"\n" + rates + three), Contains("store"));
  CHECK_THROWS_WITH(decoded(head + rates + pair("[\"a-1\", \"b\"]", "4") + three),
                    Contains("twice"));
}

TEST_CASE("sites: errors name their key") {
  CHECK_THROWS_WITH(decoded("name = \"pair\"\n" + two), Contains("wan.up") && Contains("wan.rtt"));
  CHECK_THROWS_WITH(decoded(head), Contains("[[site]]"));
  CHECK_THROWS_WITH(decoded(head + two + two), Contains("two sites are named 'a-1'"));
  CHECK_THROWS_WITH(decoded(head + two + "slow = 0.5\n"), Contains("slow"));
  CHECK_THROWS_WITH(decoded(head + two + "away = \"1 min\"\n"), Contains("stays"));
  const std::string pair = "[[wan.pair]]\nrate = \"1 Gbit/s\"\nsites = ";
  CHECK_THROWS_WITH(decoded(head + two + pair + "[\"a-1\", \"a-3\"]\n"), Contains("a-3"));
  CHECK_THROWS_WITH(decoded(head + two + pair + "[\"a-1\", \"a-1\"]\n"), Contains("two sites"));
  const std::string both = pair + "[\"a-1\", \"a-2\"]\n", swapped = pair + "[\"a-2\", \"a-1\"]\n";
  CHECK(decoded(head + two + both).pairs.size() == 1);
  CHECK_THROWS_WITH(decoded(head + two + both + swapped), Contains("twice"));
  CHECK_THROWS_WITH(decoded(head + "via = \"store\"\n" + two + both), Contains("store"));
  CHECK_THROWS_WITH(decoded(head + "jiter = \"1 ms\"\n" + two), Contains("jiter"));
  CHECK_THROWS_WITH(decoded(head + "via = \"stor\"\n" + two), Contains("via"));
  CHECK_THROWS_WITH(decoded(head + two + "outage = \"1 min\"\n"), Contains("mtbf"));
  CHECK_THROWS_WITH(load_sites("two-region"), Contains("two-regions"));
  CHECK_THROWS_WITH(load_sites("two-regions", {{"upp", "1 Gbit/s"}}),
                    Contains("--set wan.upp") && Contains("'up'"));
  CHECK_THROWS_WITH(load_sites("two-regions", {{"up", "1"}}), Contains("--set wan.up"));
  const SiteGroup slower = load_sites("two-regions", {{"up", "1 Gbit/s"}, {"rtt", "90ms"}});
  CHECK(slower.sites.front().link.up.value == Bandwidth(0.125e9));
  CHECK(slower.sites.front().link.rtt.value == Duration::seconds(0.09));
}

}  // namespace
}  // namespace lambcast
