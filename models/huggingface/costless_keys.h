// Keys of a config.json that do not affect a step's cost.
#pragma once

#include <span>
#include <string_view>

namespace lambcast::huggingface {

// Lists of keys. Each key has a space before and after it.
struct CostlessKeys {
  std::string_view reason, keys;
};
std::span<const CostlessKeys> costless_groups();

// Returns why a key does not affect a step's cost; empty for other keys.
std::string_view costless_reason(std::string_view key);

}  // namespace lambcast::huggingface
