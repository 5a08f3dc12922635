// Reads JSON of other tools; errors name the place.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lambcast::validate {

// Throws Error with file, line and the parser's message.
nlohmann::json parse_json(std::string_view text, const std::string& file);

// Returns the member `key` of an object; throws Error naming `path` if it is missing.
const nlohmann::json& member(const nlohmann::json& object, const char* key, const std::string& file,
                             const std::string& path);

// Returns the member as a finite number of at least 0.
double number_in(const nlohmann::json& object, const char* key, const std::string& file,
                 const std::string& path);

}  // namespace lambcast::validate
