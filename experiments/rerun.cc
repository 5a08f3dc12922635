#include "experiments/rerun.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/file.h"
#include "sim/base/json.h"

namespace lambcast {

Recorded read_recorded(const std::filesystem::path& folder) {
  const std::string path = (folder / "manifest.json").string();
  const Json json = parse_json(read_file(path));
  const auto text = [&](const char* key) {
    return json.is_object() && json.contains(key) && json.at(key).is_string()
               ? json.at(key).get<std::string>()
               : std::string();
  };
  Recorded recorded{text("sweep"), {}, text("command"), {}, text("version"), text("commit"), false};
  if (text("tool") != "lambcast" || recorded.sweep.empty())
    fail_input({path, 0, {}}, "does not hold its sweep: it is of an older program, or of another");
  try {
    for (const auto& flag : json.at("flags")) {
      auto values = flag.get<std::vector<std::string>>();
      const std::string key = values.at(0);
      values.erase(values.begin());
      recorded.flags.emplace_back(key, std::move(values));
    }
    json.at("inputs").get_to(recorded.inputs);
    json.at("complete").get_to(recorded.complete);
  } catch (const std::exception& error) {
    fail_input({path, 0, {}}, error.what());
  }
  return recorded;
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
