#include "sim/base/durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "sim/base/error.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& path) {
  throw Error(Exit::failure,
              fmt::format("{}: cannot be written: {}", path.string(), std::strerror(errno)));
}

void write_whole(int file, std::string_view text, const fs::path& path) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail(path);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

// An error is thrown only for a faulty disk: some file systems and folders do not support fsync.
void sync_to_disk(int file, const fs::path& path) {
  if (fsync(file) != 0 && is_of_disk(errno)) fail(path);
}

std::optional<Access> access_of(const fs::path& path) {
  struct stat file {};
  if (lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode)) return std::nullopt;
  return Access{file.st_mode & 07777, file.st_uid, file.st_gid};
}

// Sets owner, group and rights, regardless of the umask. Only root may change the owner, and a user
// may choose only among his own groups. If the group cannot be set, the group gets no more rights
// than everybody. File systems without owners or rights refuse these calls, which does no harm.
bool grant(int file, const Access& access) {
  const bool given =
      fchown(file, access.owner, access.group) == 0 ||
      (!is_of_disk(errno) && fchown(file, static_cast<uid_t>(-1), access.group) == 0);
  if (!given && is_of_disk(errno)) return false;
  struct stat now {};
  if (fstat(file, &now) != 0) return false;
  mode_t rights = access.rights;
  if (now.st_gid != access.group) rights &= ~S_IRWXG | (rights & S_IRWXO) << 3;
  return fchmod(file, rights) == 0 || !is_of_disk(errno);
}

}  // namespace

bool is_of_disk(int error) { return error == EIO || error == ENOSPC || error == EDQUOT; }

void replace_file(const fs::path& path, std::string_view text) {
  ReplacedFile file(path);
  file.append(text);
  file.commit();
}

void refuse_link(const fs::path& path) {
  std::error_code failed;
  if (!fs::is_symlink(fs::symlink_status(path, failed))) return;
  throw Error(Exit::usage, fmt::format("{}: is a symbolic link, which is not followed: remove it",
                                       path.string()));
}

void remove_file(const fs::path& path) {
  std::error_code failed;
  if (!fs::remove(path, failed) && failed)
    throw Error(Exit::failure,
                fmt::format("{}: cannot be removed: {}", path.string(), failed.message()));
}

AppendedFile::AppendedFile(const fs::path& path, std::uintmax_t size, std::optional<Access> access)
    : path_(path),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
                 access ? access->rights & S_IRWXU : 0666)) {
  if (file_ < 0) fail(path);
  if ((!access || grant(file_, *access)) && ftruncate(file_, static_cast<off_t>(size)) == 0) return;
  const int error = errno;
  close(file_);
  errno = error;
  fail(path);
}

AppendedFile::~AppendedFile() { close(file_); }

void AppendedFile::append(std::string_view text) { write_whole(file_, text, path_); }

void AppendedFile::sync() { sync_to_disk(file_, path_); }

ReplacedFile::ReplacedFile(const fs::path& path) : path_(path), part_(path.string() + ".part") {
  unlink(part_.c_str());  // left by a killed run; its rights may forbid writing
  try {
    file_.emplace(part_, 0, access_of(path));
  } catch (...) {
    unlink(part_.c_str());
    throw;
  }
}

ReplacedFile::~ReplacedFile() {
  if (file_) unlink(part_.c_str());
}

void ReplacedFile::append(std::string_view text) { file_->append(text); }

void ReplacedFile::commit() {
  file_->sync();
  if (rename(part_.c_str(), path_.c_str()) != 0) fail(path_);
  file_.reset();
  const int folder = open((path_.parent_path() / ".").c_str(), O_RDONLY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);  // saves the new name; if this fails, a power cut may restore the old text
  close(folder);
}

}  // namespace lambcast
