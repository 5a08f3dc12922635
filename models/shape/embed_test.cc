// Tests lambcast_embed, which compiles files into the program byte for byte.
#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

#include "embedded/hostile_files.h"
#include "models/shape/load.h"

using namespace lambcast;

namespace {

std::string contents(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("presets are embedded unchanged") {
  for (const std::string& name : model_presets())
    CHECK(model_preset_text(name) == contents(std::string(PRESETS_FOLDER) + "/" + name + ".toml"));
}

TEST_CASE("any text can be embedded") {
  // One file is empty. The other has every character that ends or escapes a literal, and exceeds a
  // literal's length limit (CMakeLists.txt).
  REQUIRE(hostile_files().size() == 2);
  CHECK(hostile_files()[0].text.empty());
  const EmbeddedFile hostile = hostile_files()[1];
  CHECK(hostile.text == contents(std::string(hostile.name)));
  CHECK(hostile.text.size() > 65536);
  CHECK(hostile.text.substr(0, 4) == ")\"\\;");
}
