#include "topologies/sites/site_group.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "embedded/site_files.h"
#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/range.h"
#include "sim/base/required_keys.h"

namespace lambcast {
namespace {

constexpr std::string_view ending = ".toml";
constexpr std::string_view folder = "sites/presets/";
constexpr std::int64_t most_sites = 1000, most_gpus = 1 << 24, most_streams = 65536;

std::string preset_of(std::string_view file) {
  return std::string(file.substr(folder.size(), file.size() - folder.size() - ending.size()));
}

SiteLink default_link(const Table& wan) {
  SiteLink link;
  link.up = get_within(wan, "up", any_bandwidth);
  link.down = get_within(wan, "down", any_bandwidth, link.up);
  link.rtt = get_within(wan, "rtt", any_latency);
  link.jitter = get_within(wan, "jitter", any_latency, link.jitter);
  link.window =
      get_within(wan, "window", Range<Bytes>{Bytes(1024), Bytes(1e12)},
                 {Bytes(16 * 0x1p20),
                  {Kind::assumed, "default; Linux allows 6 MiB unless tcp_rmem is raised"}});
  if (wan.has("streams")) link.streams = static_cast<int>(wan.integer("streams", 1, most_streams));
  return link;
}

// Returns the equal sites of an entry.
std::vector<Site> decode_site(const Table& table, const SiteLink& otherwise) {
  Site site;
  site.name = table.get<std::string>("name");
  site.cluster = table.get<std::string>("cluster");
  site.gpus = static_cast<int>(table.integer("gpus", 1, most_gpus));
  site.slow = get_within(table, "slow", Range<double>{1, 1000}, site.slow);
  constexpr Range<Duration> any_pause{Duration(), Duration::picoseconds(9'000'000'000'000'000'000)};
  site.mtbf = find_within(
      table, "mtbf", Range<Duration>{Duration::picoseconds(1'000'000'000'000), any_pause.high});
  if (table.has("outage") && !site.mtbf)
    fail_input(table.where("outage"), "has no effect without failures", "mtbf next to it");
  site.outage = get_within(table, "outage", any_pause, site.outage);
  site.stays = find_within(
      table, "stays", Range<Duration>{Duration::picoseconds(1'000'000'000'000), any_pause.high});
  if (table.has("away") && !site.stays)
    fail_input(table.where("away"), "has no effect on a site that never leaves",
               "stays next to it");
  site.away = get_within(table, "away", any_pause, site.away);
  site.link = otherwise;
  site.link.up = get_within(table, "up", any_bandwidth, otherwise.up);
  // A site that states only its uplink has an equal downlink, unless [wan] states a different one.
  const bool alike = otherwise.up == otherwise.down;
  site.link.down = get_within(table, "down", any_bandwidth, alike ? site.link.up : otherwise.down);
  site.link.rtt = get_within(table, "rtt", any_latency, otherwise.rtt);
  const std::int64_t count = table.has("count") ? table.integer("count", 1, most_sites) : 1;
  std::vector<Site> sites(static_cast<std::size_t>(count), site);
  for (std::size_t i = 0; count > 1 && i < sites.size(); ++i)
    sites[i].name = fmt::format("{}-{}", site.name, i + 1);
  return sites;
}

void refuse_equal_names(const Table& table, const SiteGroup& group) {
  std::vector<std::string> names;
  for (const Site& site : group.sites) names.push_back(site.name);
  std::ranges::sort(names);
  const auto twice = std::ranges::adjacent_find(names);
  if (twice != names.end())
    fail_input(table.where("site"), fmt::format("two sites are named '{}'", *twice),
               "a name of its own for each, or count = N for equal sites");
}

std::size_t index_of_site(const Table& table, const SiteGroup& group, const std::string& name) {
  std::vector<std::string> names;
  for (const Site& site : group.sites) names.push_back(site.name);
  const auto at = std::ranges::find(names, name);
  if (at == names.end()) fail_unknown(table.where("sites"), "site", name, names);
  return static_cast<std::size_t>(at - names.begin());
}

SitePair decode_pair(const Table& table, const SiteGroup& group) {
  const std::vector<std::string> names = table.words("sites");
  if (names.size() != 2 || names[0] == names[1])
    fail_input(table.where("sites"), "a pair is two sites", "[\"east\", \"west\"]");
  SitePair pair;
  pair.a = index_of_site(table, group, names[0]);
  pair.b = index_of_site(table, group, names[1]);
  const SiteLink &a = group.sites[pair.a].link, &b = group.sites[pair.b].link;
  pair.rate = get_within(table, "rate", any_bandwidth);
  pair.rtt = get_within(table, "rtt", any_latency, a.rtt.value < b.rtt.value ? b.rtt : a.rtt);
  return pair;
}

// Returns the matrix in table `key`, which has a list for each site. The diagonal is zero. Returns
// an empty matrix if the table is missing.
template <typename T>
std::vector<std::vector<T>> matrix_of(const Table& wan, std::string_view key,
                                      const SiteGroup& group,
                                      T (*parse)(std::string_view, const Where&),
                                      const Range<T>& range) {
  if (!wan.has(key)) return {};
  const Table table = wan.table(key);
  std::vector<std::vector<T>> matrix;
  for (const Site& site : group.sites) {
    const auto row = table.get<std::vector<std::string>>(site.name);
    if (row.size() != group.sites.size())
      fail_input(table.where(site.name),
                 fmt::format("{} values for {} sites", row.size(), group.sites.size()),
                 "one for each site, and \"-\" for the site itself");
    const std::size_t own = matrix.size();
    matrix.emplace_back(row.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i == own) continue;
      matrix[own][i] = parse(row[i], table.where(site.name));
      require(table, site.name, matrix[own][i], range);
    }
  }
  return matrix;
}

void add_matrix(const Table& wan, SiteGroup& group) {
  const auto rates = matrix_of<Bandwidth>(wan, "rates", group, parse_bandwidth, any_bandwidth);
  const auto rtts = matrix_of<Duration>(wan, "rtts", group, parse_duration, any_latency);
  if (rates.empty() && !rtts.empty())
    fail_input(wan.where("rtts"), "has no effect without rates", "[wan.rates] next to it");
  const Provenance source{Kind::assumed, "[wan.rates], [wan.rtts]"};
  for (std::size_t b = 0; b < rates.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) {
      const Duration longer =
          std::max(group.sites[a].link.rtt.value, group.sites[b].link.rtt.value);
      const Duration rtt = rtts.empty() ? longer : std::max(rtts[a][b], rtts[b][a]);
      group.pairs.push_back({a, b, {std::min(rates[a][b], rates[b][a]), source}, {rtt, source}});
    }
}

void add_pairs(const Table& wan, SiteGroup& group) {
  add_matrix(wan, group);
  if (group.via == Via::store && (!group.pairs.empty() || wan.has("pair")))
    fail_input(wan.where("via"), "through a store, pairs of sites have no rates of their own",
               "via = \"direct\", or no pairs and rates of sites");
  for (const Table& table : wan.tables("pair")) {
    const SitePair pair = decode_pair(table, group);
    for (const SitePair& other : group.pairs)
      if (std::minmax(pair.a, pair.b) == std::minmax(other.a, other.b))
        fail_input(table.where("sites"), "the pair is given twice",
                   "one [[wan.pair]] for it, or its rate in [wan.rates]");
    group.pairs.push_back(pair);
  }
}

}  // namespace

Bandwidth reached_rate(const SiteLink& link, Bandwidth rate) {
  if (link.rtt.value == Duration()) return rate;
  return std::min(rate, link.window.value * link.streams / link.rtt.value);
}

SiteGroup decode_sites(const Table& table) {
  refuse_missing_keys(table, {{"", "name"}, {"wan", "up"}, {"wan", "rtt"}}, "two-regions");
  SiteGroup group;
  group.name = table.get<std::string>("name");
  group.description = table.get_or<std::string>("description", "");
  const Table wan = table.table("wan");
  const SiteLink link = default_link(wan);
  if (wan.has("via")) group.via = static_cast<Via>(wan.choice("via", {"direct", "store"}));
  group.usd_per_gb = find_within(wan, "usd_per_gb", Range<double>{0, 1000});
  for (const Table& site : table.tables("site")) {
    const std::vector<Site> equal = decode_site(site, link);
    group.sites.insert(group.sites.end(), equal.begin(), equal.end());
  }
  if (group.sites.empty())
    fail_input(table.where("site"), "no [[site]] is given",
               "at least one, with name, cluster, gpus");
  if (group.sites.size() > most_sites)
    fail_input(table.where("site"), "too many sites", fmt::format("at most {}", most_sites));
  refuse_equal_names(table, group);
  add_pairs(wan, group);
  table.finish();
  return group;
}

SiteGroup load_sites(const std::string& name_or_path, const Overrides& wan) {
  const bool path = is_path(name_or_path);
  const std::string preset = path ? "" : name_or_path + std::string(ending);
  Table table = Table::parse(path ? read_file(name_or_path) : site_group_text(name_or_path),
                             path ? name_or_path : preset);
  std::vector<std::string> flags;
  for (const auto& [key, value] : wan) {
    flags.push_back(fmt::format("--set wan.{}", key));
    table.set("wan." + key, value, flags.back());
  }
  return decode_overridden(preset, flags, [&] { return decode_sites(table); });
}

std::vector<std::string> site_group_names() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : site_files()) names.push_back(preset_of(file.name));
  return names;
}

bool describes_sites(const std::string& name_or_path) {
  const std::vector<std::string> names = site_group_names();
  if (!is_path(name_or_path)) return std::ranges::find(names, name_or_path) != names.end();
  return std::filesystem::is_regular_file(name_or_path) &&
         read_file(name_or_path).find("[[site]]") != std::string::npos;
}

std::string site_group_text(const std::string& name) {
  for (const EmbeddedFile& file : site_files())
    if (preset_of(file.name) == name) return std::string(file.text);
  const std::vector<std::string> names = site_group_names();
  fail_unknown({"", 0, "--cluster"}, "sites", name, names);
}

}  // namespace lambcast
