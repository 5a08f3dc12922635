#include "kernels/nccl/nccl_api.h"

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::cuda;

namespace {

// A folder for temporary files that only this test uses.
struct OwnTemporaryFolder {
  std::string path = (std::filesystem::temp_directory_path() / "lambcast-test-XXXXXX").string();
  OwnTemporaryFolder() {
    REQUIRE(mkdtemp(path.data()) != nullptr);
    setenv("TMPDIR", path.c_str(), 1);
  }
  ~OwnTemporaryFolder() {
    unsetenv("TMPDIR");
    std::filesystem::remove_all(path);
  }
};

}  // namespace

TEST_CASE("copies of NCCL are separate libraries and leave no file") {
  const OwnTemporaryFolder folder;
  const std::vector<NcclApi> copies = load_nccl_copies(3);
  REQUIRE(copies.size() == 3);
  std::set<void*> addresses;
  for (const NcclApi& copy : copies) {
    CHECK(version_of(copy) == version_of(load_nccl()));
    addresses.insert(reinterpret_cast<void*>(copy.ncclAllReduce));
  }
  CHECK(addresses.size() == 3);
  CHECK(std::filesystem::is_empty(folder.path));
}

TEST_CASE("each copy of NCCL keeps its own last error") {
  const std::vector<NcclApi> copies = load_nccl_copies(2);
  // NCCL rejects a communicator without ranks, and keeps the reason.
  ncclComm_t comm = nullptr;
  CHECK(copies[1].ncclCommInitRank(&comm, 0, {}, 0) != ncclSuccess);
  CHECK(std::string(copies[1].ncclGetLastError(nullptr)) != "");
  CHECK(std::string(copies[0].ncclGetLastError(nullptr)) == "");
  CHECK_THROWS_WITH(require(copies[1], ncclInvalidArgument, "ncclCommInitRank"),
                    Catch::StartsWith("ncclCommInitRank: invalid argument ("));
}

TEST_CASE("a folder that cannot hold copies of NCCL is named in the error") {
  const OwnTemporaryFolder folder;
  setenv("TMPDIR", "/proc", 1);  // no folder can be made there
  CHECK_THROWS_WITH(load_nccl_copies(2), Catch::Contains("/proc/lambcast-"));
}
