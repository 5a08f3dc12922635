#include "sim/base/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>

#include "sim/base/error.h"

namespace lambcast {
namespace {

thread_local std::string last_read;

[[noreturn]] void fail_unreadable(const std::string& path, std::string_view why) {
  fail_input({path, 0, {}}, fmt::format("cannot be read: {}", why));
}

class Source {
 public:
  explicit Source(const std::string& path) : path_(path), is_stdin_(path == "-") {
    // O_NONBLOCK: opening a FIFO without a writer would otherwise block for ever.
    if (!is_stdin_) descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    struct stat what {};
    if (descriptor_ < 0 || fstat(descriptor_, &what) != 0)
      fail_unreadable(path, std::strerror(errno));
    if (S_ISDIR(what.st_mode)) {
      close(descriptor_);
      fail_unreadable(path, fmt::format("{}: name a file in it", std::strerror(EISDIR)));
    }
    may_wait_for_writer_ = S_ISFIFO(what.st_mode) && !is_stdin_;
  }
  ~Source() {
    if (!is_stdin_) close(descriptor_);
  }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;

  // Returns the number of bytes read, 0 at the end.
  std::size_t read_some(std::span<char> into) {
    while (true) {
      const ssize_t got = read(descriptor_, into.data(), into.size());
      if (got > 0) may_wait_for_writer_ = false;
      // End of file before the first byte: the writer has not opened the pipe yet, or has closed
      // it.
      if (got == 0 && may_wait_for_writer_)
        wait_for_writer();
      else if (got >= 0)
        return static_cast<std::size_t>(got);
      else if (errno == EAGAIN)
        wait_for_bytes(-1);
      else if (errno != EINTR)
        fail_unreadable(path_, std::strerror(errno));
    }
  }

 private:
  static constexpr int writer_within_s = 3;

  bool wait_for_bytes(int milliseconds) const {
    pollfd waiting{descriptor_, POLLIN, 0};
    return poll(&waiting, 1, milliseconds) != 0;
  }

  void wait_for_writer() {
    may_wait_for_writer_ = false;
    if (!wait_for_bytes(1000 * writer_within_s))
      fail_unreadable(path_, fmt::format("nobody writes to this pipe ({} s)", writer_within_s));
  }

  const std::string& path_;
  bool is_stdin_;
  int descriptor_ = STDIN_FILENO;
  bool may_wait_for_writer_ = false;
};

// Removes the byte order mark that Windows editors and shells write before UTF-8 text. Throws Error
// if the text is UTF-16.
void take_byte_order_mark(const std::string& path, std::string& text) {
  const std::string_view begin = std::string_view(text).substr(0, 2);
  if (begin == "\xFF\xFE" || begin == "\xFE\xFF" ||
      (begin.size() == 2 && (begin[0] == '\0') != (begin[1] == '\0')))
    fail_input({path, 0, {}}, "is UTF-16 text: make it UTF-8, as with iconv -f UTF-16 -t UTF-8");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
}

std::string read_whole(const std::string& path, std::size_t max_mib) {
  const std::size_t max_bytes = max_mib << 20;
  Source source(path);
  std::string text;
  std::array<char, 65536> chunk;
  while (text.size() <= max_bytes) {
    const std::size_t got = source.read_some(chunk);
    if (got == 0) break;
    text.append(chunk.data(), got);
  }
  if (text.size() > max_bytes)
    fail_input({path, 0, {}}, fmt::format("larger than {} MiB", max_mib));
  take_byte_order_mark(path, text);
  return text;
}

}  // namespace

bool is_path(std::string_view name) {
  return name == "-" || name.find('/') != std::string_view::npos || name.ends_with(".toml") ||
         name.ends_with(".json");
}

std::string read_file(const std::string& path, std::size_t max_mib) {
  last_read = path;
  if (path != "-") return read_whole(path, max_mib);
  static const std::string once = read_whole(path, max_mib);
  return once;
}

const std::string& last_file_read() { return last_read; }

}  // namespace lambcast
