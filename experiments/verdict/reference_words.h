// One-line meanings of all names in the reference: experiments/reference/*.toml, compiled in.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

// Sections of those files: "column", "stage", "cluster", "device", "model", "finding". A name with
// dots is looked for whole, then under its last part ("nccl.LL.base" is a "base"). Empty where
// there is no such line.
std::string meaning_of(std::string_view section, std::string_view name);

// All names that a section has lines for.
std::vector<std::string> explained(std::string_view section);

}  // namespace lambcast
