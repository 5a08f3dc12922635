// Cluster descriptions written by other programs: NCCL's topology of a node, the matrix of
// `nvidia-smi topo -m`, Slurm's topology.conf and topology.yaml. They state structure and no rates,
// so none is a complete cluster: such a file sets keys of a preset (--topology) and is refused as a
// cluster.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lambcast {

struct ForeignDescription {
  const char* format = "";                                // "Slurm's topology.conf"
  std::vector<std::pair<std::string, std::string>> keys;  // keys of a cluster: {"node.gpus", "8"}
  std::string open;  // facts that the file does not state; empty if complete
};

// Returns the keys that a text of one of these formats states; nothing for another text. With the
// hosts of a job, only the leaves of Slurm's files with such hosts count, each with the job's
// number of nodes on it. Other jobs are assumed to use an equal share of the uplinks per node.
// Throws Error (usage) for a host that is on no leaf.
std::optional<ForeignDescription> foreign_description(std::string_view text,
                                                      const std::vector<std::string>& hosts = {});

// Throws Error (usage) for a text of one of these formats. The error names the format, the flags
// for its contents, and the facts that it does not state.
void refuse_foreign_description(std::string_view text, const std::string& file);

// Returns the text of a cluster's preset or file. Throws Error if the text is in one of these
// formats.
std::string cluster_description(const std::string& name_or_path);

}  // namespace lambcast
