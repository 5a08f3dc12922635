#include "topologies/foreign_description.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/whole_number.h"
#include "topologies/cluster.h"
#include "topologies/host_list.h"
#include "topologies/nccl_log.h"
#include "topologies/sites/site_group.h"

namespace lambcast {
namespace {

// The cluster keys and values that a file states, and the facts that it leaves open.
struct Stated {
  std::vector<std::pair<std::string, std::string>> keys;
  std::string open;

  void set(const char* key, std::string value) { keys.emplace_back(key, std::move(value)); }
};

ForeignDescription described(const char* format, Stated stated) {
  return {format, std::move(stated.keys), std::move(stated.open)};
}

std::string lower(std::string_view text) {
  std::string small(text);
  std::ranges::transform(small, small.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return small;
}

// Returns the lines of a text without colours, comments and blanks at their ends.
std::vector<std::string> plain_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string line;
    for (std::size_t i = at; i < end; ++i) {
      if (text[i] == '\x1b') {
        while (i < end && text[i] != 'm') ++i;
      } else if (text[i] != '\r') {
        line += text[i] == '\t' ? ' ' : text[i];
      }
    }
    line = line.substr(0, line.find('#'));
    line.erase(0, line.find_first_not_of(' '));
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) lines.push_back(std::move(line));
    at = end + 1;
  }
  return lines;
}

std::vector<std::string> words_in(const std::string& line) {
  std::vector<std::string> words;
  for (std::size_t at = 0; (at = line.find_first_not_of(' ', at)) != line.npos;) {
    const std::size_t end = std::min(line.find(' ', at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

// --- NCCL's XML ---

// Returns the value of an attribute in the text of an element.
std::string attribute(std::string_view element, const char* name) {
  const std::string start = fmt::format(" {}=\"", name);
  const std::size_t at = element.find(start);
  if (at == element.npos) return {};
  const std::size_t begin = at + start.size();
  return std::string(element.substr(begin, element.find('"', begin) - begin));
}

std::vector<std::string_view> elements(std::string_view text, std::string_view name) {
  std::vector<std::string_view> found;
  const std::string start = fmt::format("<{} ", name);
  for (std::size_t at = text.find(start); at != text.npos; at = text.find(start, at + 1))
    found.push_back(text.substr(at, text.find('>', at) - at));
  return found;
}

// Returns the number of PCIe functions whose class begins with `kind`: 0x0302 and 0x0380 are GPUs,
// 0x0207 is InfiniBand.
std::int64_t functions_of(std::string_view text, std::string_view kind) {
  return std::ranges::count_if(elements(text, "pci"), [&](std::string_view function) {
    return attribute(function, "class").starts_with(kind);
  });
}

// Returns the number of GPUs. Those of the job have a rank, except in files written before the job.
// The files of clouds for NCCL_TOPO_FILE have only PCIe functions.
std::int64_t gpus_of(std::string_view text) {
  const auto all = elements(text, "gpu");
  if (all.empty()) return functions_of(text, "0x0302") + functions_of(text, "0x0380");
  const std::int64_t ranked = std::ranges::count_if(all, [](std::string_view gpu) {
    const auto rank = whole_number(attribute(gpu, "rank"));
    return rank && *rank >= 0;
  });
  return ranked > 0 ? ranked : static_cast<std::int64_t>(all.size());
}

// Returns the kind of the GPUs' links: to switches or to other GPUs. PCI classes by NCCL 2.30,
// src/graph/topo.h: 0x068000 is an NVSwitch, 0x0302.. a GPU.
std::string peers_of(std::string_view text) {
  const auto links = elements(text, "nvlink");
  const auto to_switch = [](std::string_view link) {
    return attribute(link, "tclass").starts_with("0x0680");
  };
  const bool other = elements(text, "gpu").empty() || !elements(text, "xgmi").empty();
  return other                                    ? ""
         : links.empty()                          ? "pcie"
         : std::ranges::all_of(links, to_switch)  ? "nvlink"
         : std::ranges::none_of(links, to_switch) ? "nvlink-mesh"
                                                  : "";
}

Stated of_nccl(std::string_view text) {
  Stated stated;
  if (const std::int64_t gpus = gpus_of(text); gpus > 0)
    stated.set("node.gpus", fmt::format("{}", gpus));
  if (const std::string peers = peers_of(text); !peers.empty()) stated.set("node.gpu_peers", peers);
  std::map<std::int64_t, std::int64_t> speeds;  // NICs by Mbit/s; 0: unknown
  const auto nics = elements(text, "net");
  for (const std::string_view nic : nics)
    ++speeds[whole_number(attribute(nic, "speed")).value_or(0)];
  if (nics.empty()) speeds[0] = functions_of(text, "0x0207");
  const auto [speed, cards] = *speeds.rbegin();  // the fastest NICs are those of training
  if (cards > 0) stated.set("nic.count", fmt::format("{}", cards));
  if (speed > 0)
    stated.set("nic.nominal", fmt::format("{:g}Gbit/s", static_cast<double>(speed) / 1e3));
  if (peers_of(text).empty()) stated.open = "the links among its GPUs, ";
  const auto gpus = elements(text, "gpu");
  if (const std::string amd = gpus.empty() ? "" : attribute(gpus.front(), "gcn"); !amd.empty())
    stated.open += fmt::format("the rates of its GPUs ({} of AMD), ", amd);
  if (speeds.size() > 1)
    stated.open += fmt::format("what its {} slower NICs carry, ", std::ssize(nics) - cards);
  stated.open += "all between nodes";
  return stated;
}

// --- nvidia-smi topo -m ---

Stated of_matrix(const std::vector<std::string>& lines) {
  Stated stated;
  std::int64_t gpus = 0, nics = 0;
  std::int64_t near = 0;          // NICs behind the PCIe switch of a GPU
  std::set<std::string> between;  // links of all pairs of GPUs
  const std::vector<std::string> columns = words_in(lines[0]);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> words = words_in(lines[i]);
    const auto row = static_cast<std::size_t>(gpus + nics);
    if (words.size() < row + 2 || words[row + 1] != "X") continue;  // a row of the legend
    const bool gpu = words[0].starts_with("GPU");
    (gpu ? gpus : nics) += 1;
    const auto behind_switch = [&](const std::string& path) {
      return path == "PIX" || path == "PXB" || path == "PIX+" || path == "PXB+";
    };
    if (!gpu && std::any_of(words.begin() + 1, words.begin() + 1 + gpus, behind_switch)) ++near;
    for (std::size_t j = 0; gpu && j < columns.size() && j + 1 < words.size(); ++j)
      if (columns[j].starts_with("GPU") && words[j + 1] != "X") between.insert(words[j + 1]);
  }
  if (gpus > 0) stated.set("node.gpus", fmt::format("{}", gpus));
  const auto linked =
      std::ranges::count_if(between, [](const auto& at) { return at.starts_with("NV"); });
  // Only systems with switches (V100, A100, H100) give every pair of GPUs this number of links.
  const bool switched = between.size() == 1 && gpus > 2 &&
                        std::set<std::string>{"NV6", "NV12", "NV18"}.contains(*between.begin());
  if (switched) stated.set("node.gpu_peers", "nvlink");
  if (linked == 0 && gpus > 1) stated.set("node.gpu_peers", "pcie");
  if (nics > 0) stated.set("nic.count", fmt::format("{}", near > 0 ? near : nics));
  const std::int64_t far = near > 0 ? nics - near : 0;
  stated.open = linked > 0 && !switched ? "whether NVLink goes through switches, and NICs' rates"
                                        : "NICs' rates and all between nodes";
  if (far > 0) stated.open += fmt::format(", and what its {} NICs far from GPUs carry", far);
  return stated;
}

// Returns the lines from the heading of the matrix on; nothing if there is none. Its first row is
// "GPU0 X ...", which other tools' tables do not have.
std::vector<std::string> matrix_in(const std::vector<std::string>& lines) {
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    const auto heading = words_in(lines[i]), row = words_in(lines[i + 1]);
    if (heading.front() == "GPU0" && row.size() > 1 && row[0] == "GPU0" && row[1] == "X")
      return {lines.begin() + static_cast<std::ptrdiff_t>(i), lines.end()};
  }
  return {};
}

// --- Slurm ---

struct Switches {
  std::vector<std::string> leaves;              // list of hosts of each leaf
  std::map<std::string, std::string> children;  // switches below each other switch, by name
};

// Parses "SwitchName=s0 Nodes=n[0-5] Switches=s[0-1] LinkSpeed=..". Names ignore case.
Switches switches_of_conf(const std::vector<std::string>& lines) {
  Switches found;
  for (const std::string& line : lines) {
    std::string name, nodes, below;
    for (const std::string& word : words_in(line)) {
      const std::size_t equals = std::min(word.find('='), word.size() - 1);
      const std::string key = lower(word.substr(0, equals)), value = word.substr(equals + 1);
      if (key == "switchname") name = value;
      if (key == "nodes") nodes = value;
      if (key == "switches") below = value;
    }
    if (!below.empty())  // scontrol repeats the nodes of the leaves below
      found.children[name] = below;
    else if (!name.empty() && !nodes.empty())
      found.leaves.push_back(nodes);
  }
  return found;
}

// Parses "- switch: s0", then "nodes: n[0-5]" or "children: s[0-1]".
Switches switches_of_yaml(const std::vector<std::string>& lines) {
  Switches found;
  std::string name;
  for (const std::string& line : lines) {
    std::string row = line.starts_with("- ") ? line.substr(2) : line;
    std::erase_if(row, [](char c) { return c == ' ' || c == '"' || c == '\''; });
    const std::size_t colon = std::min(row.find(':'), row.size() - 1);
    const std::string key = row.substr(0, colon), value = row.substr(colon + 1);
    if (key == "switch") name = value;
    if (key == "children") found.children[name] = value;
    if (key == "nodes" && !name.empty()) found.leaves.push_back(value);
  }
  return found;
}

// Returns the number of a job's hosts on each leaf that has any. Throws Error (usage) for a host on
// no leaf.
std::vector<std::int64_t> hosts_by_leaf(const Switches& switches,
                                        const std::vector<std::string>& job) {
  std::map<std::string, std::size_t> leaf_of;
  for (std::size_t leaf = 0; leaf < switches.leaves.size(); ++leaf)
    for (const std::string& host : host_names(switches.leaves[leaf]).value_or(job))
      leaf_of.emplace(host, leaf);
  std::map<std::size_t, std::int64_t> used;
  for (const std::string& host : job) {
    const auto leaf = leaf_of.find(host);
    if (leaf == leaf_of.end())
      fail_input({"", 0, "--hosts"}, fmt::format("'{}' is on no leaf of the topology", host));
    ++used[leaf->second];
  }
  std::vector<std::int64_t> counts;
  for (const auto& [leaf, count] : used) counts.push_back(count);
  return counts;
}

std::optional<std::vector<std::int64_t>> sizes_of(const Switches& switches) {
  std::vector<std::int64_t> sizes;
  for (const std::string& leaf : switches.leaves)
    if (const auto hosts = hosts_in(leaf))
      sizes.push_back(*hosts);
    else
      return std::nullopt;
  return sizes;
}

// Unequal numbers of hosts per leaf are treated as equal.
Stated of_switches(const Switches& switches, const std::vector<std::string>& job) {
  Stated stated;
  stated.open = "how much wider than its uplinks a leaf is (fabric.oversubscription)";
  const auto sizes = job.empty() ? sizes_of(switches) : hosts_by_leaf(switches, job);
  if (!sizes || sizes->empty()) {
    stated.open = "the hosts of its switches";
    return stated;
  }
  const auto leaves = static_cast<std::int64_t>(sizes->size());
  const std::int64_t most = *std::ranges::max_element(*sizes);
  const auto smaller =
      std::ranges::count_if(*sizes, [&](std::int64_t leaf) { return leaf < most; });
  if (leaves == 1) {
    stated.set("fabric.kind", "single-switch");
    stated.open.clear();
  } else if (smaller > 1 && job.empty()) {
    stated.open = "one size of leaves: they have different numbers of nodes";
  } else {
    const auto hosts = static_cast<std::int64_t>(job.size());
    stated.set("fabric.kind", "fat-tree");
    stated.set("fabric.nodes_per_leaf",
               fmt::format("{}", smaller > 1 ? (hosts + leaves - 1) / leaves : most));
    if (smaller > 1)
      stated.open += fmt::format(
          ", and that leaves have {} to {} of the {} hosts, which are taken as spread "
          "evenly over {}",
          *std::ranges::min_element(*sizes), most, hosts, leaves);
    if (switches.children.size() > 1) stated.open += ", and levels above the second";
  }
  return stated;
}

bool begins_with_any(const std::string& line, std::initializer_list<const char*> words) {
  return std::ranges::any_of(words,
                             [&](const char* word) { return lower(line).starts_with(word); });
}

std::optional<ForeignDescription> of_xml(std::string_view text) {
  if (text.find("<system") != text.npos)
    return described("NCCL's topology of one node", of_nccl(text));
  if (text.find("<graphs") != text.npos)
    return described("NCCL's graph of channels", {{}, "what its channels reach"});
  if (text.find("<nvidia_smi_log") != text.npos)
    return described("the output of nvidia-smi -q -x", {{}, "links between GPUs and NICs"});
  if (text.find("<topology") != text.npos)
    return described("hwloc's topology of a host", {{}, "links between GPUs and NICs"});
  return std::nullopt;
}

// Outputs that are recognised, and from which nothing is taken.
struct OtherOutput {
  std::string_view words;
  const char *format, *open;
};
constexpr OtherOutput other_outputs[] = {
    {"ROCm System Management Interface", "the output of rocm-smi", "NICs and switches"},
    {"ACCESS TABLE:", "the output of amd-smi topology", "NICs and switches"},
    {"switchguid=", "the output of ibnetdiscover",
     "the nodes of a job: give --set cluster.fabric."
     "kind=fat-tree and cluster.fabric.nodes_per_leaf"},
    {"Gbps Active/", "the output of iblinkinfo",
     "the nodes of a job: give --set cluster.fabric."
     "kind=fat-tree and cluster.fabric.nodes_per_leaf"},
    {"Physical state:", "the output of ibstat", "GPUs and switches"},
    {"PartitionName=", "Slurm's slurm.conf", "switches, which topology.conf states"},
    {" slots=", "a list of hosts", "switches; --hosts takes the names of hosts"}};

std::optional<ForeignDescription> of_other(std::string_view text) {
  for (const OtherOutput& other : other_outputs)
    if (text.find(other.words) != text.npos) return described(other.format, {{}, other.open});
  return std::nullopt;
}

[[noreturn]] void refuse_sites(const std::string& file, const std::string& name) {
  fail_input({file, 0, ""}, name + " describes several sites, not one cluster",
             "the cluster of one site; lambcast sites --cluster " + name + " forecasts them all");
}

}  // namespace

std::string cluster_description(const std::string& name_or_path) {
  if (std::ranges::count(site_group_names(), name_or_path) > 0) refuse_sites("", name_or_path);
  if (!is_path(name_or_path)) return cluster_text(name_or_path);
  std::string text = read_file(name_or_path);
  refuse_foreign_description(text, name_or_path);
  return text;
}

std::optional<ForeignDescription> foreign_description(std::string_view text,
                                                      const std::vector<std::string>& hosts) {
  if (is_nccl_log(text)) {
    NcclLog log = read_nccl_log(text);
    return ForeignDescription{
        "NCCL's log of NCCL_DEBUG=INFO", std::move(log.keys),
        "the links among its GPUs" + (log.other.empty() ? "" : "; not applied: " + log.other)};
  }
  const std::vector<std::string> lines = plain_lines(text.substr(0, std::size_t{1} << 22));
  if (lines.empty()) return std::nullopt;
  if (lines.front().starts_with("<")) return of_xml(text);
  if (const auto matrix = matrix_in(lines); !matrix.empty())
    return described("the matrix of nvidia-smi topo -m", of_matrix(matrix));
  if (begins_with_any(lines.front(), {"switchname="}))
    return described("Slurm's topology.conf", of_switches(switches_of_conf(lines), hosts));
  const char* no_switches = "switches: it names blocks or rings of nodes";
  if (begins_with_any(lines.front(), {"blockname=", "blocksizes=", "ringname="}))
    return described("Slurm's topology.conf", {{}, no_switches});
  const auto topology = [](const std::string& line) { return line.starts_with("- topology:"); };
  if (!std::ranges::any_of(lines, topology)) return of_other(text);
  const Switches switches = switches_of_yaml(lines);
  return described("Slurm's topology.yaml", switches.leaves.empty() ? Stated{{}, no_switches}
                                                                    : of_switches(switches, hosts));
}

void refuse_foreign_description(std::string_view text, const std::string& file) {
  if (const auto stated = foreign_description(text)) {
    std::string flags;
    for (const auto& [key, value] : stated->keys)
      flags += fmt::format(" --set cluster.{}={}", key, value);
    fail_input(
        {file, 0, {}},
        fmt::format("is {}, which has no measured rate{}", stated->format,
                    stated->open.empty() ? "" : fmt::format("; it leaves open {}", stated->open)),
        flags.empty() ? "a preset of the same hardware"
                      : fmt::format("a preset of the same hardware with --topology {}, which is{}",
                                    file, flags));
  }
  const std::vector<std::string> lines = plain_lines(text.substr(0, std::size_t{1} << 22));
  if (std::ranges::find(lines, "[[site]]") != lines.end()) refuse_sites(file, file);
}

}  // namespace lambcast
