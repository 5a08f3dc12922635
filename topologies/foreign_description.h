// Descriptions of clusters that other programs write: NCCL's topology of a node, the matrix of
// `nvidia-smi topo -m`, Slurm's topology.conf and topology.yaml. They state structure and no rate,
// so none is a cluster by itself: it fills keys of a preset (--topology), and is refused as one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lambcast {

struct ForeignDescription {
  const char* format = "";                                // "Slurm's topology.conf"
  std::vector<std::pair<std::string, std::string>> keys;  // of a cluster: {"node.gpus", "8"}
  std::string open;  // what the file leaves open; empty for nothing
};

// Returns what a text of one of these formats states; nothing for another text.
std::optional<ForeignDescription> foreign_description(std::string_view text);

// Throws Error (usage) for a text of one of these formats. The error names the format and the
// flags for what it states, and what it leaves open.
void refuse_foreign_description(std::string_view text, const std::string& file);

// Returns the text of a cluster's preset or file, unless that is of one of these formats.
std::string cluster_description(const std::string& name_or_path);

// Returns the number of hosts in a list of Slurm, "n[01-03,7],gpu[1-2]x[0-3]"; nothing for a text
// that is none, and for ALL.
std::optional<std::int64_t> hosts_in(std::string_view list);

}  // namespace lambcast
