// Tests the secrets of launches, and the file through which the ranks of one host get theirs.
#include "validate/measure/token_file.h"

#include <array>
#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <vector>

#include "sim/base/error.h"
#include "validate/measure/launch.h"

using namespace lambcast;
using namespace lambcast::validate;

TEST_CASE("a launch has a secret of its own, with any launcher") {
  // Variables of each launcher: rank, processes, rank on this host, processes on this host. The
  // name of the job is public and must not matter.
  const std::vector<std::array<const char*, 4>> launchers{
      {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
       "OMPI_COMM_WORLD_LOCAL_SIZE"},
      {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
       "MV2_COMM_WORLD_LOCAL_SIZE"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
      {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"}};
  for (const auto& names : launchers) {
    INFO(names[0]);
    std::map<std::string, std::string> variables{
        {names[0], "0"},         {names[1], "4"},           {names[2], "0"},
        {names[3], "4"},         {"MASTER_PORT", "29876"},  {"TORCHELASTIC_RUN_ID", "run 7"},
        {"SLURM_JOB_ID", "123"}, {"PMIX_NAMESPACE", "1234"}};
    const Environment environment = [&](const std::string& name) {
      return variables.contains(name) ? std::optional(variables.at(name)) : std::nullopt;
    };
    const Launch here = launch_of(environment);
    CHECK(here.token.empty());
    CHECK(here.token_file == token_file_of_host(29876));
    variables[names[3]] = "2";
    variables["MASTER_ADDR"] = "node0";
    CHECK_THROWS_WITH(launch_of(environment),
                      Catch::StartsWith("LAMBCAST_TOKEN: is not set, and the processes are on "
                                        "several hosts"));
    variables["LAMBCAST_TOKEN_FILE"] = "/shared/token";
    CHECK(launch_of(environment).token_file == "/shared/token");
    variables["LAMBCAST_TOKEN"] = "secret";
    CHECK(launch_of(environment).token == "secret");
    CHECK(launch_of(environment).token_file.empty());
    for (const std::size_t bytes : {0, 257}) {
      variables["LAMBCAST_TOKEN"] = std::string(bytes, 'x');
      CHECK_THROWS_WITH(launch_of(environment), "LAMBCAST_TOKEN: has " + std::to_string(bytes) +
                                                    " bytes (allowed: 1 to 256)");
    }
  }
}

TEST_CASE("only its user can read a token file, and other files are refused") {
  const std::filesystem::path path = token_file_of_host(1);
  CHECK_FALSE(read_token(path).has_value());
  std::string first;
  {
    const TokenFile file(path);
    first = file.token();
    CHECK(first.size() == 64);
    CHECK(read_token(path) == first);
    CHECK(std::filesystem::status(path).permissions() ==
          (std::filesystem::perms::owner_read | std::filesystem::perms::owner_write));
    const std::filesystem::path link = path.string() + ".link";
    std::filesystem::create_symlink(path, link);
    CHECK_THROWS_WITH(read_token(link), Catch::Contains("set LAMBCAST_TOKEN"));
    std::filesystem::remove(link);
    std::filesystem::permissions(path, std::filesystem::perms::group_read,
                                 std::filesystem::perm_options::add);
    CHECK_THROWS_WITH(read_token(path), Catch::Contains("is not a file of this user alone"));
  }
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK(TokenFile(path).token() != first);
}
