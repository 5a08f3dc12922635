// Descriptions of clusters that other programs write: NCCL's topology of a node, the matrix of
// `nvidia-smi topo -m`, Slurm's topology.conf and topology.yaml. They state structure and no rate,
// so none is a cluster by itself: it fills keys of a preset (--topology), and is refused as one.
#pragma once

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

// Returns what a text of one of these formats states; nothing for another text. With the hosts of a
// job, the leaves of Slurm's files are those that the job has hosts on, with as many nodes. Other
// jobs are taken to need as much of the uplinks, node for node. Throws Error (usage) for a host
// that is on no leaf.
std::optional<ForeignDescription> foreign_description(std::string_view text,
                                                      const std::vector<std::string>& hosts = {});

// Throws Error (usage) for a text of one of these formats. The error names the format and the
// flags for what it states, and what it leaves open.
void refuse_foreign_description(std::string_view text, const std::string& file);

// Returns the text of a cluster's preset or file, unless that is of one of these formats.
std::string cluster_description(const std::string& name_or_path);

}  // namespace lambcast
