#include "topologies/implied_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/version.h"
#include "topologies/library_defaults.h"

namespace lambcast {
namespace {

// NICs of an instance type, their nominal rate, and the rate that lasts if the nominal one is a
// burst of minutes.
struct Instance {
  const char* name;
  const char* platform;
  int nics;
  double Gbps;
  const char* source;
  double sustained_Gbps = 0;  // 0: the nominal rate
};
constexpr const char* aws_page = "AWS instance page";
constexpr const char* gcp_page = "Google Cloud GPU machine types";
constexpr const char* azure_page = "Azure GPU sizes";
constexpr Instance instances[] = {{"p3.8xlarge", "aws", 1, 10, aws_page},
                                  {"p3.16xlarge", "aws", 1, 25, aws_page},
                                  {"p3dn.24xlarge", "aws", 1, 100, aws_page},
                                  {"p4d.24xlarge", "aws", 4, 100, aws_page},
                                  {"p4de.24xlarge", "aws", 4, 100, aws_page},
                                  {"p5.48xlarge", "aws", 32, 100, aws_page},
                                  {"p5e.48xlarge", "aws", 32, 100, aws_page},
                                  {"p5en.48xlarge", "aws", 16, 200, aws_page},
                                  {"p6-b200.48xlarge", "aws", 8, 400, aws_page},
                                  {"g4dn.xlarge", "aws", 1, 25, aws_page, 5},
                                  {"g4dn.8xlarge", "aws", 1, 50, aws_page},
                                  {"g4dn.12xlarge", "aws", 1, 50, aws_page},
                                  {"g4dn.metal", "aws", 1, 100, aws_page},
                                  {"g5.xlarge", "aws", 1, 10, aws_page, 2.5},
                                  {"g5.2xlarge", "aws", 1, 10, aws_page, 5},
                                  {"g5.4xlarge", "aws", 1, 25, aws_page, 10},
                                  {"g5.8xlarge", "aws", 1, 25, aws_page},
                                  {"g5.12xlarge", "aws", 1, 40, aws_page},
                                  {"g5.16xlarge", "aws", 1, 25, aws_page},
                                  {"g5.24xlarge", "aws", 1, 50, aws_page},
                                  {"g5.48xlarge", "aws", 1, 100, aws_page},
                                  {"n1-standard-32", "gcp", 1, 32, gcp_page},
                                  {"a2-highgpu-8g", "gcp", 1, 100, gcp_page},
                                  {"a2-megagpu-16g", "gcp", 1, 100, gcp_page},
                                  {"a3-highgpu-8g", "gcp", 4, 200, gcp_page},
                                  {"a3-megagpu-8g", "gcp", 8, 200, gcp_page},
                                  {"a3-ultragpu-8g", "gcp", 8, 400, gcp_page},
                                  {"a4-highgpu-8g", "gcp", 8, 400, gcp_page},
                                  {"Standard_ND40rs_v2", "other", 1, 100, azure_page},
                                  {"Standard_ND96asr_v4", "other", 8, 200, azure_page},
                                  {"Standard_ND96amsr_A100_v4", "other", 8, 200, azure_page},
                                  {"Standard_ND96isr_H100_v5", "other", 8, 400, azure_page}};

enum class Plugin { none, aws_ofi_nccl, tcpx, tcpxo, gib, ofi_cxi };
const std::vector<std::string> plugin_names{"none",  "aws-ofi-nccl", "tcpx",
                                            "tcpxo", "gib",          "ofi-cxi"};

// Latency that aws-ofi-nccl reports, by the beginning of the instance's name.
struct Reported {
  std::string_view instance;
  int us;
};
constexpr Reported reported[] = {{"p3dn.", 150}, {"p4d", 75},   {"p5.", 75},
                                 {"p5e.", 75},   {"p5en.", 35}, {"p6-", 35}};

// A key with its value in TOML.
struct Implied {
  std::string key, value;
};
using Keys = std::vector<Implied>;

std::string published(std::string_view value, std::string_view source) {
  return fmt::format(R"({{ value = "{}", kind = "published", source = "{}" }})", value, source);
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string text;
  for (const std::string_view name : names)
    text += fmt::format("{}\"{}\"", text.empty() ? "" : ", ", name);
  return "[" + text + "]";
}

Keys of_instance(const Table& root) {
  const Table nic = root.table("nic");
  if (!nic.has("instance")) return {};
  std::vector<std::string> names;
  for (const Instance& instance : instances) names.emplace_back(instance.name);
  const Instance& is = instances[nic.choice("instance", names)];
  const std::string nominal = published(fmt::format("{} Gbit/s", is.Gbps), is.source);
  const std::string reached =
      is.sustained_Gbps > 0
          ? published(fmt::format("{} Gbit/s", is.sustained_Gbps),
                      "sustained (karpenter-provider-aws, zz_generated.bandwidth.go)")
          : fmt::format(R"({{ value = "{} Gbit/s", kind = "assumed", source = "nominal rate" }})",
                        is.Gbps);
  return {{"nic.platform", fmt::format("\"{}\"", is.platform)},
          {"nic.count", fmt::format("{}", is.nics)},
          {"nic.nominal", nominal},
          {"nic.bandwidth", reached}};
}

Keys of_platform(const Table& root) {
  const Table nic = root.table("nic");
  if (!nic.has("platform")) return {};
  constexpr int connections[] = {16, 4, 1};
  const std::size_t platform = nic.choice("platform", {"aws", "gcp", "other"});
  return {{"nccl.connections", fmt::format("{}", connections[platform])}};
}

Plugin plugin_of(const Table& root) {
  const Table nccl = root.table("nccl");
  return nccl.has("plugin") ? static_cast<Plugin>(nccl.choice("plugin", plugin_names))
                            : Plugin::none;
}

// Choices that a plugin leaves to NCCL; empty lists: no restriction.
struct Settings {
  std::vector<std::string_view> protocols{}, algorithms{};
  int reported_us = 0;
};

Settings settings_of(Plugin plugin, const Version& release, std::string_view instance) {
  Settings of;
  switch (plugin) {
    case Plugin::aws_ofi_nccl: {
      for (const Reported& by : reported)
        if (instance.starts_with(by.instance)) of.reported_us = by.us;
      const bool has_tuner = instance.starts_with("p5") || instance.starts_with("p6");
      if (!has_tuner || release < Version{1, 16, 0}) of.protocols = {"LL", "Simple"};
      break;
    }
    case Plugin::tcpx:
      of.protocols = {"Simple"};
      of.algorithms = {"ring"};
      break;
    case Plugin::tcpxo:
      if (release < Version{1, 0, 9})
        of.protocols = {"Simple"};
      else
        of.protocols = {"LL128", "Simple"};
      if (release < Version{1, 0, 12}) of.algorithms = {"ring", "tree"};
      break;
    case Plugin::ofi_cxi:
      of.protocols = {"LL", "Simple"};
      break;
    case Plugin::none:
    case Plugin::gib:
      break;
  }
  return of;
}

Settings plugin_settings(const Table& root) {
  const Table nccl = root.table("nccl");
  Version release{99999, 0, 0};  // newest
  if (nccl.has("plugin_release")) {
    if (!nccl.has("plugin"))
      fail_input(nccl.where("plugin_release"), "is the release of nccl.plugin, which is not set");
    release = parse_version(nccl.get<std::string>("plugin_release"), nccl.where("plugin_release"));
  }
  return settings_of(plugin_of(root), release,
                     root.table("nic").get_or<std::string>("instance", ""));
}

Keys of_plugin(const Table& root) {
  const Settings settings = plugin_settings(root);
  Keys keys;
  if (!settings.protocols.empty()) keys.push_back({"nccl.protocols", listed(settings.protocols)});
  if (!settings.algorithms.empty())
    keys.push_back({"nccl.algorithms", listed(settings.algorithms)});
  if (settings.reported_us > 0)
    keys.push_back({"nccl.reported_latency", published(fmt::format("{} us", settings.reported_us),
                                                       "aws-ofi-nccl src/platform-aws.cpp")});
  return keys;
}

// Returns the keys of sockets between nodes, for machines whose NICs NCCL reaches by TCP alone.
Keys of_sockets(bool pcie_peers, const Priors& priors) {
  const auto sourced = [](const std::string& value, const Provenance& from) {
    return fmt::format(R"({{ value = "{}", kind = "{}", source = "{}" }})", value,
                       name_of(from.kind), from.source);
  };
  Keys keys{{"nic.network", "\"socket\""},
            {"nccl.nic_efficiency",
             fmt::format(R"({{ value = {}, kind = "assumed", source = "{}" }})",
                         priors.socket.typical("nic_efficiency"),
                         source_of(priors, NetworkKind::socket, "nic_efficiency"))}};
  for (const ProtocolSpec& protocol : nccl_protocols(NetworkKind::socket, pcie_peers, priors)) {
    const auto hop = [&](const char* key, const Sourced<Duration>& time) {
      keys.push_back({fmt::format("nccl.{}.{}", protocol.name, key),
                      sourced(fmt::format("{} us", time.value.us()), time.provenance)});
    };
    hop("network_hop", protocol.network_hop);
    hop("tree_network_hop", protocol.tree_network_hop);
    if (protocol.node_cap)
      keys.push_back({fmt::format("nccl.{}.node_cap", protocol.name),
                      sourced(fmt::format("{} GB/s", protocol.node_cap->value.value() * 1e-9),
                              protocol.node_cap->provenance)});
  }
  return keys;
}

bool needs_plugin(Plugin plugin) { return plugin != Plugin::none && plugin != Plugin::gib; }

// Returns the keys that another plugin or release sets, with those that it leaves to NCCL.
Keys of_other_plugin(const Table& described, const Table& root, const Priors& priors) {
  const bool pcie = root.table("node").get_or<std::string>("gpu_peers", "") == "pcie";
  const bool falls_back = plugin_of(root) == Plugin::none && needs_plugin(plugin_of(described));
  Keys keys;
  if (falls_back) keys = of_sockets(pcie, priors);
  const bool socket =
      falls_back || root.table("nic").get_or<std::string>("network", "") == "socket";
  const Settings settings = plugin_settings(root);
  std::vector<std::string_view> protocols{"LL"};
  if (!pcie && !socket) protocols.emplace_back("LL128");
  protocols.emplace_back("Simple");
  keys.push_back(
      {"nccl.protocols", listed(settings.protocols.empty() ? protocols : settings.protocols)});
  if (!settings.algorithms.empty())
    keys.push_back({"nccl.algorithms", listed(settings.algorithms)});
  keys.push_back({"nccl.reported_latency", published(fmt::format("{} us", settings.reported_us),
                                                     "aws-ofi-nccl src/platform-aws.cpp")});
  return keys;
}

// Returns whether the description has a value at a dotted key.
bool states(const Table& root, const std::string& key) {
  const std::size_t dot = key.find('.');
  return root.table(key.substr(0, dot)).has(key.substr(dot + 1));
}

}  // namespace

void add_implied_keys(Table& root) {
  for (const auto& keys_of : {of_instance, of_platform, of_plugin})
    for (const auto& [key, value] : keys_of(root))
      if (!states(root, key)) root.set(key, value, "nic.instance, nic.platform, nccl.plugin");
}

void replace_implied_keys(const Table& described, const Overrides& overrides, const Priors& priors,
                          Table& root) {
  const auto sets = [&](std::string_view key) {
    return std::ranges::find(overrides, key, &Overrides::value_type::first) != overrides.end();
  };
  const auto replace = [&](const Keys& keys, const std::string& by) {
    for (const auto& [key, value] : keys)
      if (!sets(key)) root.set(key, value, "--set cluster." + by);
  };
  if (sets("nic.instance")) replace(of_instance(root), "nic.instance");
  if (sets("nic.instance") || sets("nic.platform")) replace(of_platform(root), "nic.platform");
  if (sets("nccl.plugin") || sets("nccl.plugin_release"))
    replace(of_other_plugin(described, root, priors), "nccl.plugin");
  else if (sets("nic.instance") && plugin_of(root) != Plugin::none)
    replace(of_plugin(root), "nic.instance");
}

bool is_instance(std::string_view name) {
  return std::ranges::any_of(instances, [&](const Instance& one) { return one.name == name; });
}

bool implies(std::string_view key, std::string_view field) {
  if (key == "nic.platform") return field == "nccl.connections";
  if (key == "nic.instance") return field.starts_with("nic.") || field == "nccl.connections";
  return (key == "nccl.plugin" || key == "nccl.plugin_release") &&
         (field == "nic.network" || field.starts_with("nccl."));
}

}  // namespace lambcast
