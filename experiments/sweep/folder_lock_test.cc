#include "experiments/sweep/folder_lock.h"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cerrno>

#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

template <int error>
int refuse(int, int) {
  errno = error;
  return -1;
}

TEST_CASE("folder lock: only one lock at a time") {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    CHECK(lock.note().empty());
    CHECK_THROWS_WITH(FolderLock(folder.path()), Contains("another sweep writes there now"));
  }
  CHECK_NOTHROW(FolderLock(folder.path()));
}

TEST_CASE("folder lock: a file system without locks gives a note, and no error") {
  const TemporaryFolder folder;
  CHECK_THAT(FolderLock(folder.path(), refuse<ENOLCK>).note(), Contains("cannot be locked"));
  CHECK_THAT(FolderLock(folder.path(), refuse<EOPNOTSUPP>).note(), Contains("cannot be locked"));
  CHECK_THAT(FolderLock(folder.path(), refuse<ENOSYS>).note(),
             Contains("start no second sweep into it"));
  CHECK_THROWS_WITH(FolderLock(folder.path(), refuse<EWOULDBLOCK>), Contains("another sweep"));
}

TEST_CASE("folder lock: a folder that cannot be used is refused") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(FolderLock(folder.path() / "absent"), Contains("No such file"));
  CHECK_THROWS_WITH(FolderLock(folder.file("file", "")), Contains("Not a directory"));
  // Root can use every folder, so it becomes another user here.
  const bool root = geteuid() == 0;
  namespace fs = std::filesystem;
  for (const fs::perms perms : {fs::perms::owner_read | fs::perms::owner_exec,
                                fs::perms::owner_write | fs::perms::owner_exec}) {
    fs::permissions(folder.path(), perms);
    if (root) REQUIRE(seteuid(65534) == 0);
    CHECK_THROWS_WITH(FolderLock(folder.path()), Contains("Permission denied"));
    if (root) REQUIRE(seteuid(0) == 0);
  }
  fs::permissions(folder.path(), fs::perms::owner_all);
}

}  // namespace
}  // namespace lambcast
