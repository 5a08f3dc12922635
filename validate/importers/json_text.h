// JSON of other tools, read with errors that name the place.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace lambcast::validate {

// Throws Error with file, line and what the parser says.
nlohmann::json parse_json(std::string_view text, const std::string& file);

// The member `key` of an object; throws Error naming `path` when it is not there.
const nlohmann::json& member(const nlohmann::json& object, const char* key, const std::string& file,
                             const std::string& path);

// The same as a finite number of at least 0.
double number_in(const nlohmann::json& object, const char* key, const std::string& file,
                 const std::string& path);

}  // namespace lambcast::validate
