#include "sim/base/json.h"

#include <nlohmann/json.hpp>

namespace lambcast {

Json parse_json(std::string_view text) {
  Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) json = nullptr;
  return json;
}

std::string json_line(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string json_lines(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string json_string(std::string_view text) { return json_line(Json(text)); }

Json number_or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

}  // namespace lambcast
