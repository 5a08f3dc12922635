#include "experiments/sweep/rerun.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/json.h"

namespace lambcast {

namespace {

// manifest.json, read by key. Each reader throws Error (usage) that names file and key.
class Manifest {
 public:
  explicit Manifest(std::string path)
      : path_(std::move(path)), json_(parse_json(read_file(path_))) {
    if (!json_.is_object()) fail("", "is not a JSON object", "the manifest of a sweep");
    if (text("tool") != "lambcast") fail("tool", "is not lambcast");
  }

  std::string text(const char* key) const {
    const Json& value = member(key);
    if (!value.is_string()) fail(key, "is not text", "a string");
    return value.get<std::string>();
  }
  bool flag(const char* key) const {
    const Json& value = member(key);
    if (!value.is_boolean()) fail(key, "is neither true nor false", "true, false");
    return value.get<bool>();
  }
  std::map<std::string, std::string> texts(const char* key) const {
    const Json& value = member(key);
    if (!value.is_object() || !std::ranges::all_of(value, is_text))
      fail(key, "is not a JSON object with string values",
           R"({"model bert-base": "fnv1a64:...", ...})");
    return value.get<std::map<std::string, std::string>>();
  }
  std::vector<Axis> axes(const char* key) const {
    const Json& value = member(key);
    const auto is_axis = [](const Json& axis) {
      return axis.is_array() && axis.size() >= 2 && std::ranges::all_of(axis, is_text);
    };
    if (!value.is_array() || !std::ranges::all_of(value, is_axis))
      fail(key, "is not a list of keys with values", R"([["gpus", "8", "16"], ...])");
    std::vector<Axis> axes;
    for (const Json& axis : value) {
      auto words = axis.get<std::vector<std::string>>();
      axes.emplace_back(words.front(), std::vector<std::string>(words.begin() + 1, words.end()));
    }
    return axes;
  }

 private:
  static bool is_text(const Json& value) { return value.is_string(); }

  const Json& member(const char* key) const {
    const auto found = json_.find(key);
    if (found == json_.end())
      fail(key, "is missing: an older or another program wrote it, or it is damaged");
    return *found;
  }
  [[noreturn]] void fail(const char* key, std::string_view what,
                         std::string_view allowed = {}) const {
    fail_input({path_, 0, key}, what, allowed);
  }

  std::string path_;
  Json json_;
};

}  // namespace

Recorded read_recorded(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "manifest.json";
  std::error_code none;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, none)))
    fail_input({path.string(), 0, {}}, "cannot be read",
               "a folder that lambcast sweep --out wrote");
  const Manifest manifest(path.string());
  return {manifest.text("sweep"),   manifest.axes("flags"),   manifest.text("command"),
          manifest.texts("inputs"), manifest.text("version"), manifest.text("commit"),
          manifest.flag("complete")};
}

std::vector<std::string> changed_inputs(const Recorded& recorded,
                                        const std::map<std::string, std::string>& now) {
  std::vector<std::string> changed;
  for (const auto& [name, hash] : recorded.inputs) {
    const auto found = now.find(name);
    if (found == now.end())
      changed.push_back(fmt::format("{} is not read any more", name));
    else if (found->second != hash)
      changed.push_back(
          fmt::format("{} is not what it was: {}, then {}", name, found->second, hash));
  }
  return changed;
}

}  // namespace lambcast
