#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string_view>

#include "experiments/output/cell.h"
#include "models/device/device.h"
#include "models/shape/load.h"
#include "sim/base/error.h"
#include "tools/commands.h"
#include "tools/terminal.h"
#include "topologies/cluster.h"
#include "topologies/sites/site_group.h"

namespace lambcast {
namespace {

// Returns the clusters that have a price; its source states the date.
std::string price_list() {
  std::string out = fmt::format("{:<25} {:>7}  {}\n", "prices", "USD/GPU", "an hour, of");
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    if (const auto& price = cluster.usd_per_gpu_hour)
      out += fmt::format("  {:<23} {:>7.2f}  {}: {}\n", name, price->value,
                         name_of(price->provenance.kind), price->provenance.source);
  }
  return out + "Any other price: --set cluster.usd_per_gpu_hour=USD\n";
}

std::string models_text() {
  std::string out = fmt::format("{:<26} {:>14} {:>8}\n", "models", "parameters", "tensors");
  for (const std::string& name : model_presets()) {
    const ModelShape model = load_model(name);
    out += fmt::format("  {:<24} {:>12.1f} M {:>8}\n", name,
                       static_cast<double>(parameters(model)) * 1e-6, tensor_count(model));
  }
  return out;
}

std::string clusters_text() {
  std::string out = fmt::format("{:<25} {:>13} {:>7} {:>11} {:>9} {:<9}\n", "clusters",
                                "GPUs a node", "network", "NICs a node", "effective", "evidence");
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    const auto Gbit_per_s = [](Bandwidth nic) { return 8e-9 * nic.value(); };
    out += fmt::format("  {:<25} {:>2} x {:<8} {:<5} {:>3} x {:<6.4g} {:>9.5g} {}\n", name,
                       cluster.gpus_per_node, cluster.device,
                       cluster.network == NetworkKind::rdma ? "RDMA" : "TCP", cluster.nics,
                       Gbit_per_s(cluster.nic_nominal.value),
                       Gbit_per_s(cluster.nic_bandwidth.value) * cluster.nics,
                       name_of(cluster.nic_bandwidth.provenance.kind));
  }
  return out +
         "NICs: their nominal Gbit/s. effective: Gbit/s that a node can send. RDMA: InfiniBand or "
         "RoCE\n";
}

std::string devices_text() {
  std::string out =
      fmt::format("{:<26} {:>10} {:>12} {}\n", "devices", "memory", "copies at", "evidence");
  for (const std::string& name : device_names()) {
    const Device device = load_device(name);
    out += fmt::format("  {:<24} {:>10} {:>12} {}\n", name, bytes_cell(device.memory_capacity),
                       to_text_bytes(device.copy_bandwidth.value),
                       name_of(device.copy_bandwidth.provenance.kind));
  }
  return out;
}

std::string sites_text() {
  std::string out = fmt::format("{:<26} {:>6} {:>8} {:>14} {:>10} {}\n", "sites (lambcast sites)",
                                "sites", "GPUs", "slowest up", "rtt", "evidence");
  for (const std::string& name : site_group_names()) {
    const SiteGroup group = load_sites(name);
    int gpus = 0;
    for (const Site& site : group.sites) gpus += site.gpus;
    const auto slowest = std::ranges::min_element(
        group.sites, {}, [](const Site& site) { return site.link.up.value; });
    out += fmt::format("  {:<24} {:>6} {:>8} {:>14} {:>10} {}\n", group.name, group.sites.size(),
                       gpus, to_text_bits(slowest->link.up.value), to_text(slowest->link.rtt.value),
                       name_of(slowest->link.up.provenance.kind));
  }
  return out;
}

// A group of presets, listed with one line each.
struct PresetGroup {
  std::string_view name;
  std::string (*text)();
};
constexpr std::array preset_groups{
    PresetGroup{"models", models_text}, PresetGroup{"clusters", clusters_text},
    PresetGroup{"prices", price_list}, PresetGroup{"devices", devices_text},
    PresetGroup{"sites", sites_text}};
constexpr std::string_view all_groups = "all";

std::string counted_names(const char* title, const std::vector<std::string>& names) {
  return fmt::format("{} ({}): {}\n", title, names.size(), fmt::join(names, ", "));
}

// Returns the names of all presets on one screen; clusters by GPU.
std::string names_text() {
  std::map<std::string, std::vector<std::string>> by_gpu;
  for (const std::string& name : cluster_names()) {
    const std::string gpu = load_cluster(name, {}).device;  // "a100-80g"
    by_gpu[gpu.substr(0, gpu.find('-'))].push_back(name);
  }
  std::string out = counted_names("models", model_presets()) +
                    fmt::format("clusters ({}), by GPU:\n", cluster_names().size());
  for (const auto& [gpu, names] : by_gpu)
    out += fmt::format("  {:<6}  {}\n", gpu, fmt::join(names, ", "));
  out += counted_names("devices", device_names()) + counted_names("sites", site_group_names());
  std::vector<std::string_view> words;
  for (const PresetGroup& group : preset_groups) words.push_back(group.name);
  constexpr std::size_t width = 80;
  return wrapped(out, width) + fmt::format(
                                   "Figures: lambcast presets list {}|{}\n"
                                   "Whole, with sources: lambcast presets show NAME\n",
                                   fmt::join(words, "|"), all_groups);
}

int list_presets(const std::string& wanted) {
  if (wanted.empty()) {
    print_text(names_text());
    return 0;
  }
  std::string out;
  std::vector<std::string> known{std::string(all_groups)};
  for (const PresetGroup& group : preset_groups) {
    known.emplace_back(group.name);
    if (wanted == group.name || wanted == all_groups)
      out += (out.empty() ? "" : "\n") + group.text();
  }
  if (out.empty()) fail_unknown({"", 0, "GROUP"}, "group", wanted, known);
  print_text(out);
  return 0;
}

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

int show_preset(const std::string& name) {
  const auto models = model_presets(), clusters = cluster_names(), devices = device_names(),
             site_groups = site_group_names();
  if (has(models, name)) {
    fmt::print("{}", model_preset_text(name));
  } else if (has(clusters, name)) {
    fmt::print("{}", cluster_text(name));
  } else if (has(devices, name)) {
    fmt::print("{}", device_text(name));
  } else if (has(site_groups, name)) {
    fmt::print("{}", site_group_text(name));
  } else {
    std::vector<std::string> all = models;
    all.insert(all.end(), clusters.begin(), clusters.end());
    all.insert(all.end(), devices.begin(), devices.end());
    all.insert(all.end(), site_groups.begin(), site_groups.end());
    fail_unknown({"", 0, "NAME"}, "preset", name, all);
  }
  return 0;
}

}  // namespace

Command add_presets(CLI::App& app) {
  auto name = std::make_shared<std::string>(), group = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "presets", "models, clusters, devices and sites that ship inside, with sources");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples
  lambcast presets list
  lambcast presets list clusters
  lambcast presets show commodity-25gbe > my-cluster.toml)");
  command
      ->add_subcommand("list",
                       "the names on one screen, or the figures of a group; also the default")
      ->add_option("GROUP", *group,
                   "models, clusters, prices, devices, sites or all: one line each (default: the "
                   "names alone)");
  CLI::App* show = command->add_subcommand("show", "a description whole, ready to copy and change");
  show->add_option("NAME", *name, "a name from the list")->required();
  return [name, group, show] { return show->parsed() ? show_preset(*name) : list_presets(*group); };
}

}  // namespace lambcast
