// One-line meanings of all names in the reference: experiments/reference/*.toml, compiled in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

// Returns the meaning of a name in a section of those files: "column", "stage", "cluster",
// "device", "model", "finding". A dotted name is looked up whole, then by its last part
// ("nccl.LL.base" is a "base"). Empty if there is no such line.
std::string meaning_of(std::string_view section, std::string_view name);

// Returns all names that have a line in the section.
std::vector<std::string> explained(std::string_view section);

}  // namespace lambcast
