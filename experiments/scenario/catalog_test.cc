#include "experiments/scenario/catalog.h"

#include <catch2/catch.hpp>
#include <filesystem>

#include "experiments/scenario/scenario_case.h"

namespace lambcast {
namespace {

TEST_CASE("catalog: a model that is a folder without a slash gets a hint on its name") {
  const std::filesystem::path folder = "catalog_test_checkpoint";
  std::filesystem::create_directory(folder);
  CHECK_THAT(refusal(with({{"model", folder.string()}})),
             Catch::Matchers::Contains(
                 "is not a preset, but a folder (allowed: ./catalog_test_checkpoint "));
  std::filesystem::remove(folder);
}

}  // namespace
}  // namespace lambcast
