// A number of a JSON answer that may be missing: null then.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>

namespace lambcast {

inline nlohmann::ordered_json number_or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nlohmann::ordered_json(nullptr);
}

}  // namespace lambcast
