#include <fmt/format.h>

#include <algorithm>
#include <memory>

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
  std::string out = fmt::format("\n{:<25} {:>7}  {}\n", "prices", "USD/GPU", "an hour, of");
  for (const std::string& name : cluster_names()) {
    const Cluster cluster = load_cluster(name, {});
    if (const auto& price = cluster.usd_per_gpu_hour)
      out += fmt::format("  {:<23} {:>7.2f}  {}: {}\n", name, price->value,
                         name_of(price->provenance.kind), price->provenance.source);
  }
  return out + "Of another, or yours: --set cluster.usd_per_gpu_hour=USD\n";
}

std::string sites_line(const SiteGroup& group) {
  int gpus = 0;
  for (const Site& site : group.sites) gpus += site.gpus;
  const auto slowest = std::ranges::min_element(
      group.sites, {}, [](const Site& site) { return site.link.up.value; });
  return fmt::format("  {:<24} {:>6} {:>8} {:>14} {:>10} {}\n", group.name, group.sites.size(),
                     gpus, to_text_bits(slowest->link.up.value), to_text(slowest->link.rtt.value),
                     name_of(slowest->link.up.provenance.kind));
}

std::string preset_list() {
  std::string out = fmt::format("{:<26} {:>14} {:>8}\n", "models", "parameters", "tensors");
  for (const std::string& name : model_presets()) {
    const ModelShape model = load_model(name);
    out += fmt::format("  {:<24} {:>12.1f} M {:>8}\n", name,
                       static_cast<double>(parameters(model)) * 1e-6, tensor_count(model));
  }
  out += fmt::format("\n{:<25} {:>13} {:>7} {:>11} {:>9} {:<9}\n", "clusters", "GPUs a node",
                     "network", "NICs a node", "effective", "evidence");
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
  out +=
      "NICs: their nominal Gbit/s. effective: Gbit/s that a node can send. RDMA: InfiniBand or "
      "RoCE\n";
  out += price_list();
  out += fmt::format("\n{:<26} {:>10} {:>12} {}\n", "devices", "memory", "copies at", "evidence");
  for (const std::string& name : device_names()) {
    const Device device = load_device(name);
    out += fmt::format("  {:<24} {:>10} {:>12} {}\n", name, bytes_cell(device.memory_capacity),
                       to_text_bytes(device.copy_bandwidth.value),
                       name_of(device.copy_bandwidth.provenance.kind));
  }
  out += fmt::format("\n{:<26} {:>6} {:>8} {:>14} {:>10} {}\n", "sites (lambcast sites)", "sites",
                     "GPUs", "slowest up", "rtt", "evidence");
  for (const std::string& name : site_group_names()) out += sites_line(load_sites(name));
  return out;
}

int list_presets() {
  print_text(preset_list());
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
  auto name = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand(
      "presets", "models, clusters, devices and sites that ship inside, with sources");
  command->require_subcommand(0, 1);
  command->footer(R"(Examples
  lambcast presets list
  lambcast presets show commodity-25gbe > my-cluster.toml)");
  command->add_subcommand("list", "one line each; also without a word");
  CLI::App* show = command->add_subcommand("show", "a description whole, ready to copy and change");
  show->add_option("NAME", *name, "a name from the list")->required();
  return [name, show] { return show->parsed() ? show_preset(*name) : list_presets(); };
}

}  // namespace lambcast
