#include "topologies/priors.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>
#include <vector>

#include "embedded/prior_files.h"

namespace lambcast {
namespace {

Priors::OfKind decode_kind(const Table& table) {
  Priors::OfKind kind;
  for (const std::string& key : table.keys()) {
    if (key == "fabrics" || key == "learned") continue;
    const Table entry = table.table(key);
    const Prior prior{entry.get<double>("typical"), entry.get<double>("spread"),
                      static_cast<int>(entry.integer("fabrics", 0, 1000))};
    if (!(prior.typical > 0) || !(prior.spread > 0))
      fail_input(entry.where("typical"), "must be above zero, as its spread");
    entry.find_text("why");
    kind.of.emplace(key, prior);
  }
  kind.fabrics = static_cast<int>(table.get<std::vector<std::string>>("fabrics").size());
  table.find_text("learned");
  return kind;
}

}  // namespace

NetworkKind decode_network(const Table& nic) {
  constexpr std::pair<std::string_view, std::string_view> named[] = {
      {"roce", "rdma"}, {"infiniband", "rdma"}, {"ib", "rdma"},
      {"efa", "rdma"},  {"tcp", "socket"},      {"ethernet", "socket"}};
  const auto word = nic.get<std::string>("network");
  for (const auto& [name, kind] : named)
    if (word == name)
      fail_input(
          nic.where("network"),
          fmt::format("'{}' is not an allowed value; networks of this type are \"{}\"", word, kind),
          "rdma, socket");
  return static_cast<NetworkKind>(nic.choice("network", {"rdma", "socket"}));
}

double Priors::OfKind::typical(std::string_view key) const {
  const auto found = of.find(key);
  return found == of.end() ? 1 : found->second.typical;
}

double Priors::OfKind::spread(std::string_view key, double otherwise) const {
  const auto found = of.find(key);
  return found == of.end() ? otherwise : found->second.spread;
}

std::string source_of(const Priors& priors, NetworkKind network, std::string_view key) {
  const Priors::OfKind& kind = priors.on(network);
  const auto found = kind.of.find(key);
  const int determine = found == kind.of.end() ? 0 : found->second.fabrics;
  return fmt::format("prior of {} {} fabrics, {} of which determine{} it (topologies/priors.toml)",
                     kind.fabrics, network == NetworkKind::rdma ? "RDMA" : "TCP",
                     determine == 0 ? "none" : std::to_string(determine), determine > 1 ? "" : "s");
}

Priors decode_priors(const Table& root) {
  Priors priors{decode_kind(root.table("rdma")), decode_kind(root.table("socket"))};
  root.finish();
  return priors;
}

const Priors& shipped_priors() {
  static const Priors priors =
      decode_priors(Table::parse(prior_files().front().text, "priors.toml"));
  return priors;
}

}  // namespace lambcast
