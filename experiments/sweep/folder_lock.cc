#include "experiments/sweep/folder_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "sim/base/error.h"

namespace lambcast {

FolderLock::FolderLock(const std::filesystem::path& folder, int (*lock)(int, int))
    : file_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (file_ < 0 || faccessat(file_, ".", W_OK | X_OK, AT_EACCESS) != 0) {
    const int error = errno;
    if (file_ >= 0) close(file_);
    throw Error(Exit::usage, fmt::format("{}: {}", folder.string(), std::strerror(error)));
  }
  if (lock(file_, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) {
    close(file_);
    throw Error(Exit::usage, fmt::format("{}: another sweep writes there now", folder.string()));
  }
  note_ = fmt::format("{}: cannot be locked ({}): start no second sweep into it meanwhile",
                      folder.string(), std::strerror(errno));
}

FolderLock::~FolderLock() { close(file_); }

}  // namespace lambcast
