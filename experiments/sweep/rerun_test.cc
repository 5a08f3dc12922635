// A damaged manifest is refused in one line that names the file and the key.
#include "experiments/sweep/rerun.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "sim/base/json.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

Json manifest_to_damage() {
  return {{"tool", "lambcast"},  {"version", "0.1.0"},
          {"commit", "0000000"}, {"inputs", {{"model bert-base", "fnv1a64:0123456789abcdef"}}},
          {"complete", true},    {"command", "sweep s.toml"},
          {"sweep", "[base]\n"}, {"flags", Json::array({Json::array({"gpus", "8", "16"})})}};
}

std::string refusal_of(const std::string& manifest) {
  const TemporaryFolder folder;
  const std::string path = folder.file("manifest.json", manifest);
  try {
    read_recorded(folder.path());
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
    CHECK_THAT(error.what(), StartsWith(path + ": ") && !Contains("\n") && !Contains("[json."));
    return std::string(error.what()).substr(path.size() + 2);
  }
  return "";
}

TEST_CASE("rerun: every key of a manifest that is absent or of another kind is named") {
  const Json whole = manifest_to_damage();
  CHECK(refusal_of(whole.dump()).empty());
  const std::vector<Json> kinds{nullptr,
                                true,
                                7,
                                "text",
                                Json::array(),
                                Json::array({7}),
                                Json::array({Json::array()}),
                                Json::array({Json::array({"gpus"})}),
                                Json::array({Json::array({"gpus", 8})}),
                                Json::object(),
                                {{"a", 7}}};
  for (const auto& [key, value] : whole.items()) {
    Json damaged = whole;
    damaged.erase(key);
    CHECK_THAT(refusal_of(damaged.dump()), StartsWith(key + ": is missing"));
    std::size_t refused = 0;
    for (const Json& kind : kinds) {
      damaged[key] = kind;
      const std::string why = refusal_of(damaged.dump());
      if (why.empty()) continue;
      CHECK_THAT(why, StartsWith(key + ": is n"));
      ++refused;
    }
    // Each key accepts values of at most one of these kinds.
    CHECK(refused + 1 >= kinds.size());
  }
  for (const char* torn : {"", "{", "[]", "7", "\"text\"", "null"})
    CHECK_THAT(refusal_of(torn), Contains("is not a JSON object"));
}

}  // namespace
}  // namespace lambcast
