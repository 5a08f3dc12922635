// Files that survive a kill and a power cut: a sweep of hours must find its rows again, and readers
// of a page or a table find all of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast {

// Whether an error number means a disk that is full or at fault, and not a wrong path.
bool is_of_disk(int error);

// Permission bits of a file, with the owner and the group that they apply to.
struct Access {
  mode_t rights;
  uid_t owner;
  gid_t group;
};

// Writes behind what a file holds.
class AppendedFile {
 public:
  // Keeps the first `size` bytes and drops what stands behind them. With `access`, the file has it
  // before anything is written, as far as this process may give it, and never opens to more; a new
  // file without has the owner and the rights of the process (umask). A symbolic link is not
  // followed: it would lead what is written out of its folder. Throws Error (failure).
  AppendedFile(const std::filesystem::path& path, std::uintmax_t size,
               std::optional<Access> access = std::nullopt);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  // Throws Error (failure) naming the file; part of the text may be there then.
  void append(std::string_view text);
  // Returns once all of it is on disk.
  void sync();

 private:
  std::filesystem::path path_;
  int file_;
};

// Written as a second file, FILE.part, that is renamed once it is on disk, so that a reader finds
// the old text or the new one, of the owner, the group and the rights that the old one had: the
// second file has them from its start, so that a kill at no moment opens to others what only its
// owner may read. Without commit() the old file stays. Throws Error (failure) where that cannot be
// done.
class ReplacedFile {
 public:
  explicit ReplacedFile(const std::filesystem::path& path);
  ~ReplacedFile();
  ReplacedFile(const ReplacedFile&) = delete;
  ReplacedFile& operator=(const ReplacedFile&) = delete;

  void append(std::string_view text);
  void commit();

 private:
  std::filesystem::path path_, part_;
  std::optional<AppendedFile> file_;
};

// Throws Error (usage) if the path itself is a symbolic link: a folder of another user may hold one
// that leads to a file of this user.
void refuse_link(const std::filesystem::path& path);

// All of it at once.
void replace_file(const std::filesystem::path& path, std::string_view text);

// A file or an empty folder, where it is there. Throws Error (failure) where it stays.
void remove_file(const std::filesystem::path& path);

}  // namespace lambcast
