#include <catch2/catch.hpp>
#include <filesystem>

#include "sim/base/file.h"
#include "sim/base/table.h"

namespace lambcast::validate {
namespace {

Table description(const std::filesystem::path& file) {
  return Table::parse(read_file(file.string()), file.filename().string());
}

TEST_CASE("calibrate: a refit keeps everything that a preset states about its hosts and NICs") {
  const std::filesystem::path validate = LAMBCAST_VALIDATE;
  int bases = 0;
  for (const auto& base : std::filesystem::directory_iterator(validate / "calibrate/bases")) {
    const auto file = validate / "../topologies/presets" / base.path().filename();
    if (!exists(file)) continue;
    ++bases;
    const Table before = description(base.path()), preset = description(file);
    for (const char* section : {"node", "nic"}) {
      const Table said = before.table(section), refitted = preset.table(section);
      for (const std::string& key : refitted.keys()) {
        INFO(file.filename() << " " << section << "." << key);
        CHECK(said.has(key));
      }
    }
  }
  CHECK(bases >= 19);
}

}  // namespace
}  // namespace lambcast::validate
