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

// Some file systems, and folders on some, cannot be synchronised: no error of the user's.
void sync_to_disk(int file, const fs::path& path) {
  if (fsync(file) != 0 && is_of_disk(errno)) fail(path);
}

std::optional<fs::perms> rights_of(const fs::path& path) {
  std::error_code error;
  const fs::file_status file = fs::status(path, error);
  if (!fs::is_regular_file(file)) return std::nullopt;
  return file.permissions();
}

}  // namespace

bool is_of_disk(int error) { return error == EIO || error == ENOSPC || error == EDQUOT; }

void replace_file(const fs::path& path, std::string_view text) {
  const fs::path part = path.string() + ".part";
  unlink(part.c_str());  // of a run that was killed; its rights may forbid to write
  try {
    AppendedFile file(part, 0, rights_of(path));
    file.append(text);
    file.sync();
  } catch (...) {
    std::remove(part.c_str());
    throw;
  }
  if (std::rename(part.c_str(), path.c_str()) != 0) {
    const int error = errno;
    std::remove(part.c_str());
    errno = error;
    fail(path);
  }
  const int folder = open((path.parent_path() / ".").c_str(), O_RDONLY | O_CLOEXEC);
  if (folder < 0) return;
  fsync(folder);  // the new name; where it fails the old text stands there after a power cut
  close(folder);
}

AppendedFile::AppendedFile(const fs::path& path, std::uintmax_t size,
                           std::optional<fs::perms> rights)
    : path_(path),
      file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 rights ? static_cast<mode_t>(*rights) : 0666)) {
  if (file_ < 0) fail(path);
  // Past the umask. File systems without rights refuse, and lose nothing by it.
  if (rights) fchmod(file_, static_cast<mode_t>(*rights));
  if (ftruncate(file_, static_cast<off_t>(size)) == 0) return;
  const int error = errno;
  close(file_);
  errno = error;
  fail(path);
}

AppendedFile::~AppendedFile() { close(file_); }

void AppendedFile::append(std::string_view text) { write_whole(file_, text, path_); }

void AppendedFile::sync() { sync_to_disk(file_, path_); }

}  // namespace lambcast
