#include "topologies/nccl_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "sim/base/whole_number.h"
#include "topologies/implied_keys.h"

namespace lambcast {
namespace {

constexpr std::string_view mark = "NCCL INFO ";
constexpr std::string_view version_mark = "NCCL version 2.";
constexpr std::string_view by_environment = " set by environment to ";

// Calls `read` with each message of the log and its line. The release stands on a line of its own
// in older logs.
template <typename Read>
void each_message(std::string_view text, Read read) {
  for (int line = 1; !text.empty(); ++line) {
    std::string_view row = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(row.size() + 1, text.size()));
    if (row.ends_with('\r')) row.remove_suffix(1);
    const std::size_t info = row.find(mark), version = row.find(version_mark);
    if (info != row.npos)
      read(row.substr(info + mark.size()), line);
    else if (version != row.npos)
      read(row.substr(version), line);
  }
}

// Returns the text after `before`, up to one of `ends`; nothing if the message does not have it.
std::optional<std::string> after(std::string_view message, std::string_view before,
                                 std::string_view ends = " ,;") {
  const std::size_t at = message.find(before);
  if (at == message.npos) return std::nullopt;
  message.remove_prefix(at + before.size());
  const std::string_view found = message.substr(0, message.find_first_of(ends));
  if (found.empty()) return std::nullopt;
  return std::string(found);
}

// Returns the numbers and dots at the beginning of a text, without a dot at the end.
std::string release_in(std::string_view text) {
  text = text.substr(0, text.find_first_not_of("0123456789."));
  while (text.ends_with('.')) text.remove_suffix(1);
  return std::string(text);
}

std::optional<double> number_in(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value <= 0) return std::nullopt;
  return value;
}

// A network as NCCL or a plugin names it, and the keys that it sets.
struct Network {
  std::string_view name;  // beginning of the name
  const char* network;
  const char* plugin;  // null: told by other lines
};
constexpr Network networks[] = {{"Socket", "socket", "none"},  {"IB", "rdma", "none"},
                                {"FasTrak", "rdma", "tcpxo"},  {"GPUDirectTCPX", "rdma", "tcpx"},
                                {"gIB", "rdma", "gib"},        {"AWS Libfabric", "rdma", nullptr},
                                {"Libfabric", "rdma", nullptr}};

// Settings whose value is that of a key, with the key.
struct SameSetting {
  std::string_view name;
  const char* key;
};
constexpr SameSetting same_settings[] = {
    {"NCCL_ALGO", "nccl.algorithms"},        {"NCCL_PROTO", "nccl.protocols"},
    {"NCCL_MIN_NCHANNELS", "nccl.min_ctas"}, {"NCCL_MAX_NCHANNELS", "nccl.max_ctas"},
    {"NCCL_MIN_CTAS", "nccl.min_ctas"},      {"NCCL_MAX_CTAS", "nccl.max_ctas"},
    {"NCCL_NTHREADS", "nccl.threads"},       {"NCCL_LL128_NTHREADS", "nccl.ll128_threads"}};

class Facts {
 public:
  void read(std::string_view message) {
    release(message);
    plugin(message);
    nics(message);
    transport(message);
    job(message);
  }

  void read(const NcclSetting& setting) {
    for (const auto& [name, key] : same_settings)
      if (setting.name == name) add(key, setting.value);
    const std::string& value = setting.value;
    if (setting.name == "NCCL_PXN_DISABLE" && value == "1") add("nccl.pxn", "false");
    if (setting.name == "NCCL_COLLNET_ENABLE" && value == "1") add("nccl.sharp", "true");
    if (setting.name == "NCCL_NVLS_ENABLE" && value == "0")
      add("nccl.algorithms", "^nvls,nvls_tree");
  }

  NcclLog found() const {
    NcclLog log;
    const auto note = [&](const std::string& text) {
      log.other += (log.other.empty() ? "" : "; ") + text;
    };
    for (const auto& [key, values] : values_)
      if (values.size() == 1)
        log.keys.emplace_back(key, *values.begin());
      else
        note(fmt::format("{} values of {}", values.size(), key));
    for (const std::string& fact : facts_) note(fact);
    std::string links;
    for (const auto& [name, count] : links_)
      links += fmt::format("{}{} x {}", links.empty() ? "" : ", ", count, name);
    if (!links.empty()) note("connections: " + links);
    return log;
  }

 private:
  void add(const std::string& key, const std::string& value) { values_[key].insert(value); }

  void release(std::string_view message) {
    if (const auto version = after(message, "NCCL version ", " +-"))
      if (const std::string number = release_in(*version); number.starts_with("2.")) {
        const std::string minor = release_in(number.substr(0, number.find('.', 2)));
        const auto is = whole_number(minor.substr(2));
        if (is && *is >= 12)
          add("nccl.version", minor);
        else
          facts_.insert("NCCL " + number + ", older than nccl.version may be");
      }
    for (const char* before : {"Initializing aws-ofi-nccl ", "NET/FasTrak v",
                               "NET/GPUDirectTCPX ver. ", "Initializing gIB v"})
      if (const auto version = after(message, before))
        if (const std::string number = release_in(*version); !number.empty())
          add("nccl.plugin_release", number);
  }

  void plugin(std::string_view message) {
    for (const char* before : {"Selected Provider is ", "Selected provider is "})
      if (const auto provider = after(message, before)) {
        if (*provider == "efa") add("nccl.plugin", "aws-ofi-nccl");
        if (*provider == "cxi") add("nccl.plugin", "ofi-cxi");
        if (*provider != "efa" && *provider != "cxi") facts_.insert("libfabric over " + *provider);
        if (const auto nics = whole_number(after(message, "(found ").value_or("")))
          add("nic.count", fmt::format("{}", *nics));
      }
    if (const auto platform = after(message, "NET/OFI Running on ")) {
      if (is_instance(*platform))
        add("nic.instance", *platform);
      else
        facts_.insert("instance " + *platform);
    }
    const auto name = after(message, "Using network ", ";");
    if (!name) return;
    const auto* const network = std::ranges::find_if(
        networks, [&](const Network& one) { return name->starts_with(one.name); });
    if (network == std::end(networks)) {
      facts_.insert("network " + *name);
      return;
    }
    add("nic.network", network->network);
    if (network->plugin != nullptr) add("nccl.plugin", network->plugin);
  }

  // Reads "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:..." and the rates.
  void nics(std::string_view message) {
    const bool ib = message.starts_with("NET/IB : Using [");
    const bool socket = message.starts_with("NET/Socket : Using [");
    if (ib || socket) {
      const std::string_view list = message.substr(0, message.find(';'));
      std::size_t count = 0;
      while (list.find(fmt::format("[{}]", count)) != list.npos) ++count;
      const bool infiniband = list.find("/IB") != list.npos, roce = list.find("/RoCE") != list.npos;
      if (infiniband && roce)
        facts_.insert(fmt::format("{} NICs of InfiniBand and of Ethernet", count));
      else
        add("nic.count", fmt::format("{}", count));
      if (infiniband != roce) add("nic.link_layer", infiniband ? "infiniband" : "ethernet");
    }
    if (message.starts_with("NET/IB"))
      if (const auto speed = after(message, " speed="))
        if (const auto Mbps = number_in(*speed)) add_rate(*Mbps * 1e-3);
    // "NET/0 (1f2/1/50.000000)": GB/s.
    if (const std::size_t at = message.find("NET/"); at != message.npos)
      if (const auto inside = after(message.substr(at), " (", ")"))
        if (const auto slash = inside->rfind('/'); std::ranges::count(*inside, '/') == 2)
          if (const auto GBps = number_in(inside->substr(slash + 1))) add_rate(*GBps * 8);
    if (message.find("sockets per thread") != message.npos) {
      const auto threads = whole_number(after(message, "Using ").value_or(""));
      const auto each = whole_number(after(message, "threads and ").value_or(""));
      if (threads && each) add("nccl.connections", fmt::format("{}", *threads * *each));
    }
  }

  void add_rate(double Gbps) { add("nic.nominal", fmt::format("{:g}Gbit/s", Gbps)); }

  // Counts "Channel 00/0 : 1[1] -> 0[0] via P2P/IPC" by transport.
  void transport(std::string_view message) {
    const std::size_t via = message.find(" via ");
    if (via == message.npos || !message.starts_with("Channel ")) return;
    const std::string_view way = message.substr(via + 5);
    std::string name(way.substr(0, way.find_first_of("/ ")));
    if (name == "NET") {
      name = std::string(way.substr(0, way.find('/', 4)));
      if (way.find("/GDRDMA") != way.npos) name += " with GPUDirect";
    }
    ++links_[name];
  }

  void job(std::string_view message) {
    if (message.find(" coll channels") != message.npos) facts_.insert(std::string(message));
    const auto ranks = after(message, " nRanks "), nodes = after(message, " nNodes ");
    if (ranks && nodes) facts_.insert(fmt::format("{} ranks on {} nodes", *ranks, *nodes));
  }

  std::map<std::string, std::set<std::string>> values_;
  std::set<std::string> facts_;
  std::map<std::string, int> links_;
};

}  // namespace

bool is_nccl_log(std::string_view text) { return text.find(mark) != text.npos; }

std::vector<NcclSetting> settings_in_nccl_log(std::string_view text) {
  std::vector<NcclSetting> settings;
  each_message(text, [&](std::string_view message, int line) {
    const std::size_t at = message.find(by_environment);
    if (at == message.npos || !message.starts_with("NCCL_")) return;
    const std::string name(message.substr(0, at));
    if (std::ranges::find(settings, name, &NcclSetting::name) != settings.end()) return;
    std::string_view value = message.substr(at + by_environment.size());
    value = value.substr(0, value.find_last_not_of(" .") + 1);
    settings.push_back({name, std::string(value), line});
  });
  return settings;
}

NcclLog read_nccl_log(std::string_view text) {
  Facts facts;
  each_message(text, [&](std::string_view message, int) { facts.read(message); });
  for (const NcclSetting& setting : settings_in_nccl_log(text)) facts.read(setting);
  return facts.found();
}

}  // namespace lambcast
