// JSON as this project writes it, and reads what it wrote: the members of an object stay in the
// order in which they were put (and are looked up one after the other: other tools' files may have
// many). The library's parser and printer are compiled anew in every unit that calls them; here
// they are once.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast {

using Json = nlohmann::ordered_json;

// Null where the text is no JSON.
Json parse_json(std::string_view text);

// Bytes that are no UTF-8 (names of files may be any) become U+FFFD.
std::string json_line(const Json& value);   // without an end of line
std::string json_lines(const Json& value);  // two spaces a level, the last line ended too

// A text in quotes: a string of JSON, and a basic string of TOML.
std::string json_string(std::string_view text);

Json number_or_null(const std::optional<double>& value);

}  // namespace lambcast
