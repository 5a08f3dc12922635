// Keys of a config.json that bear on no step's cost.
#pragma once

#include <string_view>

namespace lambcast::huggingface {

// Returns why a key bears on no step's cost; empty for other keys.
std::string_view costless_reason(std::string_view key);

}  // namespace lambcast::huggingface
