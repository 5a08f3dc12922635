#include "validate/importers/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"

namespace lambcast::validate {

nlohmann::json parse_json(std::string_view text, const std::string& file) {
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    const int line = 1 + static_cast<int>(std::count(text.begin(), end, '\n'));
    const std::string what = error.what();
    if (what.ends_with("expected end of input"))
      fail_input({file, line, {}}, "a second JSON document begins here",
                 "one document a file: give each by itself");
    fail_input({file, line, {}}, fmt::format("is not JSON: {}", what.substr(what.rfind("] ") + 2)));
  } catch (const nlohmann::json::exception& error) {
    fail_input({file, 0, {}}, fmt::format("is not usable JSON: {}", error.what()));
  }
}

const nlohmann::json& member(const nlohmann::json& object, const char* key, const std::string& file,
                             const std::string& path) {
  if (!object.is_object() || !object.contains(key)) {
    fail_input({file, 0, path + key}, "is missing");
  }
  return object[key];
}

double number_in(const nlohmann::json& object, const char* key, const std::string& file,
                 const std::string& path) {
  const nlohmann::json& value = member(object, key, file, path);
  if (!value.is_number()) fail_input({file, 0, path + key}, "is not a number");
  const double number = value.get<double>();
  if (!std::isfinite(number) || number < 0) {
    fail_input({file, 0, path + key}, fmt::format("is {}", number), "a finite number from 0");
  }
  return number;
}

}  // namespace lambcast::validate
