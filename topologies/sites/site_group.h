// Sites that train one model over a wide area: the cluster and number of GPUs of each site, and the
// links between sites.
//
//   name = "two-regions"
//   [wan]                          defaults of every site
//   up = "100 Gbit/s"              a site's link to the others; the GPUs of the site share it
//   down = "100 Gbit/s"            default: as up
//   rtt = "20 ms"                  round trip between two sites
//   streams = 16                   TCP connections of a site (default 16, assumed)
//   window = "16 MiB"              of one connection (default 16 MiB, assumed)
//   usd_per_gb = 0.02              price of a GB that leaves a site (default: none)
//   jitter = "5 ms"                spread (standard deviation) of a round trip (default: none)
//   via = "direct"                 or "store": all data passes through an object store
//   [[wan.pair]]                   what a pair of sites reaches, if the sites' own links carry more
//   sites = ["east", "west"]
//   rate = "25 Gbit/s"             each way
//   rtt = "70 ms"                  default: the longer one of the two sites
//   [wan.rates]                    all pairs at once: a row per sender, a column per receiver; both
//   east = ["-", "25 Gbit/s"]      directions of a pair take the slower one
//   west = ["20 Gbit/s", "-"]
//   [wan.rtts]                     round trips in the same form; a pair takes the longer one
//   [[site]]
//   name = "east"
//   cluster = "hgx-h100-ndr"       preset or file
//   gpus = 64
//   count = 1                      number of equal sites
//   slow = 1.0                     factor on the time of its steps
//   up, down, rtt                  instead of the defaults
//   mtbf = "30 h"                  mean time between failures of the site (default: none)
//   outage = "10 min"              from a failure to the next step (default 10 min, assumed)
//   stays = "20 h"                 mean time until the site leaves (default: it never does)
//   away = "1 h"                   until it joins again (default 1 h, assumed)
//
// TCP moves one window per round trip, so a site reaches min(link, streams x window / rtt). An
// exchange waits for the slowest of R trips, sqrt(2 ln R) spreads above the mean (the leading term
// for the largest of R normal values). Left out: packet loss.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/overrides.h"
#include "sim/base/provenance.h"
#include "sim/base/table.h"
#include "sim/base/units.h"

namespace lambcast {

struct SiteLink {
  Sourced<Bandwidth> up, down;  // rates of the whole site
  Sourced<Duration> rtt;
  Sourced<Duration> jitter{Duration(), {Kind::assumed, "default"}};
  Sourced<Bytes> window;
  int streams = 16;
  bool operator==(const SiteLink&) const = default;
};

struct Site {
  std::string name, cluster;
  int gpus = 1;
  Sourced<double> slow{1, {Kind::assumed, "default"}};
  SiteLink link;
  std::optional<Sourced<Duration>> mtbf;
  Sourced<Duration> outage{Duration::picoseconds(600'000'000'000'000), {Kind::assumed, "default"}};
  std::optional<Sourced<Duration>> stays;
  Sourced<Duration> away{Duration::picoseconds(3'600'000'000'000'000), {Kind::assumed, "default"}};
  bool operator==(const Site&) const = default;
};

// A pair of sites, by index, that reaches less than the links of both.
struct SitePair {
  std::size_t a = 0, b = 0;
  Sourced<Bandwidth> rate;
  Sourced<Duration> rtt;
  bool operator==(const SitePair&) const = default;
};

enum class Via { direct, store };

struct SiteGroup {
  std::string name, description;
  Via via = Via::direct;
  std::optional<Sourced<double>> usd_per_gb;
  std::vector<Site> sites;
  std::vector<SitePair> pairs;
  bool operator==(const SiteGroup&) const = default;
};

// Returns min(rate, streams x window / rtt).
Bandwidth reached_rate(const SiteLink& link, Bandwidth rate);

// Throws Error (usage) for a key that is unknown, missing or out of range.
SiteGroup decode_sites(const Table& table);

// Loads a preset by name, or a file by path. `wan` replaces keys of [wan], as `--set wan.up=...`.
SiteGroup load_sites(const std::string& name_or_path, const Overrides& wan = {});
std::vector<std::string> site_group_names();
// Returns whether a name is that of a preset, or of a file with a [[site]].
bool describes_sites(const std::string& name_or_path);
// Throws Error if there is no preset of that name.
std::string site_group_text(const std::string& name);

}  // namespace lambcast
