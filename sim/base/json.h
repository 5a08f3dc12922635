// JSON that keeps the members of an object in the order of insertion. Members are found by linear
// search, which is slow for objects of other tools with many members. The library's parser and
// printer are compiled here once, not in every file that calls them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast {

using Json = nlohmann::ordered_json;

// Returns null if the text is not JSON.
Json parse_json(std::string_view text);

// Return the text of a value. Bytes that are not UTF-8 become U+FFFD, since file names may hold any
// bytes.
std::string json_line(const Json& value);   // without a line end
std::string json_lines(const Json& value);  // indented by two spaces, with a final line end

// Returns the text in quotes, valid both as a JSON string and as a basic string of TOML.
std::string json_string(std::string_view text);

Json number_or_null(const std::optional<double>& value);

}  // namespace lambcast
