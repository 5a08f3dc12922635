// Preloaded into a program under test: from the FAULT_CALL-th call that changes something below the
// folder FAULT_FOLDER on, the disk fails. FAULT selects how:
//
//   ENOSPC EDQUOT EROFS EIO   that call and all later ones fail with this error; half of a text is
//                             written before
//   kill                      the process is killed (SIGKILL) before the call
//   tear                      the process is killed in the middle of a write, or after FAULT_BYTES
//                             bytes; after a call that does not write
//
// The file FAULT_MARK exists after the fault. Counted are the calls by which our programs and the
// C++ library change files: open, fopen, mkdir, write, writev, ftruncate, fsync, rename, remove,
// unlink, fchmod, fchown, and calls that they may use in future: pwrite, link, chmod, rmdir.
// Programs started by the program have a working disk.
//
// With CLOCK_BACKWARDS, the time of day decreases by an hour with each query.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

namespace {

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

std::string setting(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

bool concerns(std::string path) {
  static const std::string folder = setting("FAULT_FOLDER");
  if (folder.empty()) return false;
  if (!path.starts_with('/')) {
    char here[4096];
    path = (getcwd(here, sizeof here) == nullptr ? std::string() : here) + ("/" + path);
  }
  return path.starts_with(folder);
}

bool concerns(int file) {
  char path[4096];
  const std::string link = "/proc/self/fd/" + std::to_string(file);
  const ssize_t length = readlink(link.c_str(), path, sizeof path);
  return length > 0 && concerns(std::string(path, static_cast<std::size_t>(length)));
}

// Whether this call fails; `first` if it is the FAULT_CALL-th call.
struct Meeting {
  bool fault, first;
};
Meeting meet(bool concerned) {
  static std::atomic<long> calls{0};
  static const long wanted = std::atol(setting("FAULT_CALL").c_str());
  if (!concerned || wanted == 0) return {false, false};
  const long call = ++calls;
  if (call == wanted) close(creat(setting("FAULT_MARK").c_str(), 0600));
  return {call >= wanted, call == wanted};
}

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  _exit(137);
}

int error_of(const std::string& fault) {
  if (fault == "ENOSPC") return ENOSPC;
  if (fault == "EDQUOT") return EDQUOT;
  return fault == "EROFS" ? EROFS : EIO;
}

const std::string& fault() {
  static const std::string text = setting("FAULT");
  return text;
}

// Makes a call that succeeds or fails as a whole: `act` makes it, `fails` is its result on failure.
template <typename Act, typename Result>
Result whole(bool concerned, const Act& act, Result fails) {
  const Meeting meeting = meet(concerned);
  if (!meeting.fault) return act();
  if (fault() == "kill") die();
  if (fault() == "tear") {
    act();
    die();
  }
  errno = error_of(fault());
  return fails;
}

// Makes a write: `real` writes the first bytes of a text.
template <typename Write>
ssize_t write_some(int file, std::size_t bytes, const Write& real) {
  const Meeting meeting = meet(concerns(file));
  if (!meeting.fault) return real(bytes);
  if (fault() == "kill") die();
  if (fault() == "tear" || (meeting.first && bytes > 1 && fault() != "EROFS")) {
    static const std::string asked = setting("FAULT_BYTES");
    const std::size_t part = asked.empty() ? bytes / 2 : std::min(bytes, std::stoul(asked));
    const ssize_t half = real(part);
    if (fault() == "tear") die();
    return half;
  }
  errno = error_of(fault());
  return -1;
}

[[gnu::constructor]] void spare_children() { unsetenv("LD_PRELOAD"); }

bool changes(const char* mode) { return std::strpbrk(mode, "wa+") != nullptr; }

}  // namespace

extern "C" {

ssize_t write(int file, const void* text, std::size_t bytes) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  return write_some(file, bytes, [&](std::size_t part) { return real(file, text, part); });
}

ssize_t pwrite(int file, const void* text, std::size_t bytes, off_t at) {
  static auto* const real = next<ssize_t(int, const void*, std::size_t, off_t)>("pwrite");
  return write_some(file, bytes, [&](std::size_t part) { return real(file, text, part, at); });
}

ssize_t writev(int file, const iovec* parts, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
  static auto* const real = next<ssize_t(int, const void*, std::size_t)>("write");
  return write_some(file, text.size(),
                    [&](std::size_t part) { return real(file, text.data(), part); });
}

int fsync(int file) {
  static auto* const real = next<int(int)>("fsync");
  return whole(
      concerns(file), [&] { return real(file); }, -1);
}

int ftruncate(int file, off_t size) noexcept {
  static auto* const real = next<int(int, off_t)>("ftruncate");
  return whole(
      concerns(file), [&] { return real(file, size); }, -1);
}

int rename(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("rename");
  return whole(
      concerns(std::string(to)), [&] { return real(from, to); }, -1);
}

int link(const char* from, const char* to) noexcept {
  static auto* const real = next<int(const char*, const char*)>("link");
  return whole(
      concerns(std::string(to)), [&] { return real(from, to); }, -1);
}

int remove(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("remove");
  return whole(
      concerns(std::string(path)), [&] { return real(path); }, -1);
}

int unlink(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("unlink");
  return whole(
      concerns(std::string(path)), [&] { return real(path); }, -1);
}

int rmdir(const char* path) noexcept {
  static auto* const real = next<int(const char*)>("rmdir");
  return whole(
      concerns(std::string(path)), [&] { return real(path); }, -1);
}

int chmod(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("chmod");
  return whole(
      concerns(std::string(path)), [&] { return real(path, mode); }, -1);
}

int fchmod(int file, mode_t mode) noexcept {
  static auto* const real = next<int(int, mode_t)>("fchmod");
  return whole(
      concerns(file), [&] { return real(file, mode); }, -1);
}

int fchown(int file, uid_t owner, gid_t group) noexcept {
  static auto* const real = next<int(int, uid_t, gid_t)>("fchown");
  return whole(
      concerns(file), [&] { return real(file, owner, group); }, -1);
}

int mkdir(const char* path, mode_t mode) noexcept {
  static auto* const real = next<int(const char*, mode_t)>("mkdir");
  return whole(
      concerns(std::string(path)), [&] { return real(path, mode); }, -1);
}

int open(const char* path, int flags, ...) {
  static auto* const real = next<int(const char*, int, ...)>("open");
  va_list more;
  va_start(more, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(more, mode_t) : 0;
  va_end(more);
  const bool changing = (flags & (O_WRONLY | O_RDWR)) != 0;
  return whole(
      changing && concerns(std::string(path)), [&] { return real(path, flags, mode); }, -1);
}

std::FILE* fopen(const char* path, const char* mode) {
  static auto* const real = next<std::FILE*(const char*, const char*)>("fopen");
  return whole(
      changes(mode) && concerns(std::string(path)), [&] { return real(path, mode); },
      static_cast<std::FILE*>(nullptr));
}

std::FILE* fopen64(const char* path, const char* mode) { return fopen(path, mode); }

int clock_gettime(clockid_t clock, timespec* now) noexcept {
  static auto* const real = next<int(clockid_t, timespec*)>("clock_gettime");
  static const bool backwards = std::getenv("CLOCK_BACKWARDS") != nullptr;
  static std::atomic<long> hours{0};
  const int result = real(clock, now);
  if (backwards && clock == CLOCK_REALTIME) now->tv_sec -= 3600 * ++hours;
  return result;
}

std::time_t time(std::time_t* result) noexcept {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (result != nullptr) *result = now.tv_sec;
  return now.tv_sec;
}

}  // extern "C"
