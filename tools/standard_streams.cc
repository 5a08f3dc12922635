#include "tools/standard_streams.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include "sim/base/error.h"

namespace lambcast {
namespace {

// Opens /dev/null in place of a closed stream: open() returns the lowest free descriptor, and lower
// ones are already in use.
void fill_if_closed(int descriptor, int mode) {
  if (fcntl(descriptor, F_GETFD) == -1 && errno == EBADF) open("/dev/null", mode);
}

ssize_t write_or_drop(void*, const char* text, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t wrote = write(STDERR_FILENO, text + done, bytes - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) break;
    done += static_cast<std::size_t>(wrote);
  }
  return static_cast<ssize_t>(bytes);
}

bool reader_has_gone() {
  pollfd out{STDOUT_FILENO, POLLOUT, 0};
  return poll(&out, 1, 0) == 1 && (out.revents & POLLERR) != 0;
}

}  // namespace

void settle_standard_streams() {
  std::signal(SIGPIPE, SIG_IGN);
  fill_if_closed(STDIN_FILENO, O_WRONLY);
  fill_if_closed(STDOUT_FILENO, O_RDONLY);
  fill_if_closed(STDERR_FILENO, O_WRONLY);
  if (FILE* const dropping =
          fopencookie(nullptr, "w", {nullptr, write_or_drop, nullptr, nullptr})) {
    std::setvbuf(dropping, nullptr, _IONBF, 0);
    stderr = dropping;
  }
}

std::optional<int> exit_code_of_stdout() {
  errno = 0;
  const bool whole = std::fflush(stdout) == 0 && std::ferror(stdout) == 0;
  if (whole) return std::nullopt;
  if (reader_has_gone()) return 128 + SIGPIPE;
  // If errno does not hold the error, another write reports it again.
  if (errno == 0 && write(STDOUT_FILENO, "\n", 1) == 1) errno = EIO;
  fmt::print(stderr, "lambcast: the results cannot be written to stdout: {}\n",
             std::strerror(errno));
  return static_cast<int>(Exit::failure);
}

}  // namespace lambcast
