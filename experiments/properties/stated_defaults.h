// For tests: the value of each what-if key in a run that does not state it.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "experiments/scenario/scenario.h"

namespace lambcast {

// Default of a key as text; nothing if the key does not apply to the run.
using Stated = std::optional<std::string>;
using Default = std::function<Stated(const Scenario&)>;
using Defaults = std::map<std::string_view, Default>;

const Defaults& what_if_defaults();

// Returns the keys that name files, other programs or other descriptions of the same run.
const std::set<std::string_view>& keys_without_default();

}  // namespace lambcast
