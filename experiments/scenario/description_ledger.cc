#include "experiments/scenario/description_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "topologies/nccl_log.h"

namespace lambcast {
namespace {

using enum Treatment;

constexpr KeyNames keys_of_topologies[] = {
    {applied, "",
     "class|tclass|speed|rank|GPU|NIC|SwitchName|Nodes|Switches|switch|nodes|children"},
    {costless, "rates of the PCIe are those of the preset", "link_width|link_speed"},
    {costless, "an address or name of a part, which is counted",
     "busid|dev|target|device|subsystem_vendor|subsystem_device|guid|port|name|id|numaid|host_hash|"
     "xml_version|version|topology|tree|switches|Level|cluster_default"},
    {costless, "a processor of the host, which no rate depends on",
     "affinity|arch|vendor|familyid|modelid|CPU|NUMA|Affinity|ID"},
    {costless, "the GPU is the preset's device", "sm|gcn"},
    {costless, "what the NIC's plugin reports; the preset has its own",
     "gdr|coll|maxconn|latency|keep"},
    {costless, "how many links a GPU has; their rate is the preset's", "count"},
    {costless, "Slurm does not use it, and it has no unit", "LinkSpeed"},
    {applied, "",
     "NCCL_ALGO|NCCL_PROTO|NCCL_MIN_NCHANNELS|NCCL_MAX_NCHANNELS|NCCL_MIN_CTAS|NCCL_MAX_CTAS|"
     "NCCL_NTHREADS|NCCL_LL128_NTHREADS|NCCL_PXN_DISABLE|NCCL_COLLNET_ENABLE|NCCL_NVLS_ENABLE"},
    {costless, "its effect on networks and NICs stands in other lines of the log",
     "NCCL_NET|NCCL_NET_PLUGIN|NCCL_IB_DISABLE|NCCL_IB_HCA|NCCL_SOCKET_IFNAME|NCCL_TOPO_FILE|"
     "NCCL_SOCKET_NTHREADS|NCCL_NSOCKS_PERTHREAD"},
    {costless, "how messages are printed, or how ranks find one another",
     "NCCL_DEBUG|NCCL_DEBUG_SUBSYS|NCCL_DEBUG_FILE|NCCL_COMM_ID|NCCL_SOCKET_FAMILY|"
     "NCCL_IB_GID_INDEX|NCCL_LAUNCH_MODE"}};

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

void add_topology_key(std::vector<LedgerEntry>& entries, std::string_view key, int line) {
  if (key.empty() || std::ranges::find(entries, key, &LedgerEntry::key) != entries.end()) return;
  const auto* group = std::ranges::find_if(
      keys_of_topologies, [&](const KeyNames& keys) { return holds_name(keys.names, key, '|'); });
  if (group == std::end(keys_of_topologies))
    entries.push_back({std::string(key), line, named, "not read"});
  else
    entries.push_back({std::string(key), line, group->treatment, std::string(group->reason)});
}

// Calls `read` with each line of a text, without its comment, and the line's number.
template <typename Read>
void each_row(std::string_view text, Read read) {
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    read(text.substr(0, std::min(end, text.find('#'))), line);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

// Returns the name that ends at `end`.
std::string_view name_before(std::string_view row, std::size_t end) {
  std::size_t begin = end;
  while (begin > 0 && is_name(row[begin - 1])) --begin;
  return row.substr(begin, end - begin);
}

// Adds the words of a row of nvidia-smi's matrix: GPU0 and GPU1 are columns of one kind.
void add_columns(std::vector<LedgerEntry>& entries, std::string_view row, int line) {
  for (std::size_t at = 0; at < row.size(); ++at) {
    const std::size_t begin = at;
    while (at < row.size() && std::isalpha(static_cast<unsigned char>(row[at])) != 0) ++at;
    add_topology_key(entries, row.substr(begin, at - begin), line);
    while (at < row.size() && is_name(row[at])) ++at;
  }
}

}  // namespace

std::span<const KeyNames> topology_keys() { return keys_of_topologies; }

std::vector<LedgerEntry> description_ledger(std::string_view text) {
  std::vector<LedgerEntry> entries;
  std::string section;
  each_row(text, [&](std::string_view row, int line) {
    const std::size_t first = std::min(row.find_first_not_of(" \t["), row.size());
    std::size_t end = first;
    while (end < row.size() && (is_name(row[end]) || row[end] == '.' || row[end] == '-')) ++end;
    const std::string name(row.substr(first, end - first));
    if (row.starts_with("[")) {
      section = name + ".";
    } else if (const std::size_t equals = row.find_first_not_of(" \t", end);
               !name.empty() && equals != row.npos && row[equals] == '=') {
      const bool words = name == "name" || name == "description";
      entries.push_back({section + name, line, words ? costless : applied,
                         words ? "a name or sentence for people" : ""});
    }
  });
  return entries;
}

std::vector<LedgerEntry> topology_ledger(std::string_view text) {
  std::vector<LedgerEntry> entries;
  if (is_nccl_log(text)) {
    for (const NcclSetting& setting : settings_in_nccl_log(text))
      add_topology_key(entries, setting.name, setting.line);
    return entries;
  }
  const std::size_t first = std::min(text.find_first_not_of(" \t\r\n"), text.size());
  const bool xml = text.substr(first).starts_with('<');
  const bool matrix = !xml && text.substr(0, text.find('\n')).find("GPU0") != text.npos;
  each_row(text, [&](std::string_view row, int line) {
    if (matrix && line == 1) return add_columns(entries, row, line);
    if (matrix) return;
    const char mark = xml || row.find('=') != row.npos ? '=' : ':';
    for (std::size_t at = row.find(mark); at != row.npos; at = row.find(mark, at + 1))
      add_topology_key(entries, name_before(row, at), line);
  });
  return entries;
}

std::string unknown_topology_keys(std::string_view text) {
  std::string names;
  for (const LedgerEntry& entry : topology_ledger(text))
    if (entry.treatment == named) names += (names.empty() ? "" : ", ") + entry.key;
  return names;
}

}  // namespace lambcast
