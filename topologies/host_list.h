// Lists of hosts in Slurm's notation: "n[01-03,7],gpu[1-2]x[0-3],login1". Leading zeros belong to
// the name, and a name may have several brackets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lambcast {

// Returns the number of hosts in a list; nothing for a text that is no list, and for ALL.
std::optional<std::int64_t> hosts_in(std::string_view list);

// Returns the names in a list, in order; nothing for a text that is no list, for ALL, and for more
// than 100,000 names.
std::optional<std::vector<std::string>> host_names(std::string_view list);

}  // namespace lambcast
