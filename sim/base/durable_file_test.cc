#include "sim/base/durable_file.h"

#include <grp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

namespace lambcast {
namespace {

namespace fs = std::filesystem;

// A file in its own folder, to which everybody may write.
class OldFile {
 public:
  OldFile() {
    std::string name = (fs::temp_directory_path() / "lambcast-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    chmod(folder_.c_str(), 0777);
    std::ofstream(path()) << "old";
  }
  ~OldFile() { fs::remove_all(folder_); }
  OldFile(const OldFile&) = delete;
  OldFile& operator=(const OldFile&) = delete;

  fs::path path() const { return folder_ / "file"; }
  bool alone() const { return std::distance(fs::directory_iterator(folder_), {}) == 1; }
  std::string text() const {
    std::ifstream file(path());
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Access access() const {
    struct stat file {};
    REQUIRE(stat(path().c_str(), &file) == 0);
    return {file.st_mode & 07777, file.st_uid, file.st_gid};
  }

 private:
  fs::path folder_;
};

// Returns a group that this process may give to files and that is not their default group.
gid_t another_group() {
  if (geteuid() == 0) return getegid() + 4243;
  std::vector<gid_t> groups(static_cast<std::size_t>(getgroups(0, nullptr)));
  getgroups(static_cast<int>(groups.size()), groups.data());
  for (const gid_t group : groups)
    if (group != getegid()) return group;
  return getegid();
}

TEST_CASE("durable file: a replaced file keeps its owner") {
  const OldFile file;
  const uid_t owner = geteuid() == 0 ? 4242 : geteuid();
  const gid_t group = another_group();
  REQUIRE(chown(file.path().c_str(), owner, group) == 0);
  REQUIRE(chmod(file.path().c_str(), 0664) == 0);
  const mode_t before = umask(077);
  replace_file(file.path(), "new");
  umask(before);
  CHECK(file.text() == "new");
  CHECK(file.access().owner == owner);
  CHECK(file.access().group == group);
  CHECK(file.access().rights == 0664);
  CHECK(file.alone());
}

TEST_CASE("durable file: if the group cannot be kept, other groups get no rights") {
  if (geteuid() != 0) return;  // only root may set another owner
  const std::pair<mode_t, mode_t> rights[] = {
      {0660, 0600}, {0664, 0644}, {0640, 0600}, {0666, 0666}};
  for (const auto& [then, now] : rights) {
    const OldFile file;
    REQUIRE(chown(file.path().c_str(), 4242, 4243) == 0);
    REQUIRE(chmod(file.path().c_str(), then) == 0);
    const pid_t child = fork();
    if (child == 0) {
      if (setgroups(0, nullptr) != 0 || setgid(5253) != 0 || setuid(5252) != 0) _exit(1);
      replace_file(file.path(), "new");
      _exit(0);
    }
    int ended = -1;
    REQUIRE(waitpid(child, &ended, 0) == child);
    CHECK(ended == 0);
    CHECK(file.text() == "new");
    CHECK(file.access().owner == 5252);
    CHECK(file.access().group == 5253);
    CHECK(file.access().rights == now);
  }
}

TEST_CASE("durable file: a symbolic link is neither followed nor taken for its target") {
  const OldFile outside, folder;
  const fs::path link = folder.path(), part = folder.path().string() + ".part";
  fs::remove(link);
  fs::create_symlink(outside.path(), link);
  CHECK_THROWS_WITH(AppendedFile(link, 0), Catch::Contains("file: cannot be written"));
  CHECK_THROWS_WITH(refuse_link(link), Catch::Contains("file: is a symbolic link"));
  fs::create_symlink(outside.path(), part);
  replace_file(link, "new");
  CHECK(outside.text() == "old");
  CHECK(folder.text() == "new");
  CHECK_FALSE(fs::is_symlink(link));
  CHECK_NOTHROW(refuse_link(link));
  CHECK_NOTHROW(refuse_link(part));  // the link is gone
}

TEST_CASE("durable file: an unfinished replacement leaves the old text and no second file") {
  const OldFile file;
  {
    ReplacedFile fresh(file.path());
    fresh.append("half of");
    CHECK_FALSE(file.alone());
  }
  CHECK(file.text() == "old");
  CHECK(file.alone());
  ReplacedFile fresh(file.path());
  fresh.append("one ");
  fresh.append("and two");
  CHECK(file.text() == "old");
  fresh.commit();
  CHECK(file.text() == "one and two");
  CHECK(file.alone());
}

}  // namespace
}  // namespace lambcast
