// Descriptions of clusters that other programs write: NCCL's topology of a node, the matrix of
// `nvidia-smi topo -m`, Slurm's topology.conf and topology.yaml. They state structure and no rate,
// so none is a cluster by itself; the refusal gives the keys that it fills in a preset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast {

// Throws Error (usage) for a text of one of these formats. The error names the format and the
// flags for what it states, and what it leaves open.
void refuse_foreign_description(std::string_view text, const std::string& file);

// Returns the text of a cluster's preset or file, unless that is of one of these formats.
std::string cluster_description(const std::string& name_or_path);

// Returns the number of hosts in a list of Slurm, "n[01-03,7],gpu[1-2]x[0-3]"; nothing for a text
// that is none, and for ALL.
std::optional<std::int64_t> hosts_in(std::string_view list);

}  // namespace lambcast
