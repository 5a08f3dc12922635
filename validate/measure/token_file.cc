#include "validate/measure/token_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "sim/base/durable_file.h"
#include "sim/base/error.h"

namespace lambcast::validate {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kOfOthers = S_IRWXG | S_IRWXO;

[[noreturn]] void fail_token(const fs::path& path, std::string_view why) {
  throw Error(Exit::failure, fmt::format("{}: {}; set LAMBCAST_TOKEN to the same secret for all "
                                         "processes",
                                         path.string(), why));
}

std::string random_token() {
  std::array<unsigned char, 32> bytes{};
  // Once the system has started, getrandom() returns up to 256 bytes completely.
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    throw Error(Exit::failure, fmt::format("no random bytes: {}", std::strerror(errno)));
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

}  // namespace

fs::path token_file_of_host(int port) {
  const fs::path folder = fmt::format("/tmp/lambcast-{}", geteuid());
  if (mkdir(folder.c_str(), S_IRWXU) != 0 && errno != EEXIST)
    fail_token(folder, std::strerror(errno));
  struct stat found {};
  // Another user may have put a link or a folder there before.
  if (lstat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode) || found.st_uid != geteuid() ||
      (found.st_mode & kOfOthers) != 0)
    fail_token(folder, "is not a folder of this user alone");
  return folder / fmt::format("port-{}.token", port);
}

TokenFile::TokenFile(fs::path path) : path_(std::move(path)), token_(random_token()) {
  const fs::path part = path_.string() + ".part";
  unlink(part.c_str());
  AppendedFile(part, 0, Access{S_IRUSR | S_IWUSR, geteuid(), getegid()}).append(token_);
  // Replaces the file of an earlier launch.
  if (rename(part.c_str(), path_.c_str()) != 0) fail_token(path_, std::strerror(errno));
}

TokenFile::~TokenFile() { unlink(path_.c_str()); }

std::optional<std::string> read_token(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0 && errno == ENOENT) return std::nullopt;
  if (file < 0) fail_token(path, std::strerror(errno));
  struct stat found {};
  std::array<char, 256> text;
  ssize_t got = -1;
  const bool ours = fstat(file, &found) == 0 && S_ISREG(found.st_mode) &&
                    found.st_uid == geteuid() && (found.st_mode & kOfOthers) == 0;
  if (ours) got = read(file, text.data(), text.size());
  close(file);
  if (!ours) fail_token(path, "is not a file of this user alone");
  if (got <= 0) return std::nullopt;
  return std::string(text.data(), static_cast<std::size_t>(got));
}

}  // namespace lambcast::validate
