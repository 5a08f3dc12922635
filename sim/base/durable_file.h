// Files that survive a kill and a power cut: the rows of an interrupted sweep are still there, and
// readers of a page or a table never find half of it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast {

// Returns whether an error number means a full or faulty disk, not a wrong path.
bool is_of_disk(int error);

// Permission bits of a file, and the owner and group to which they apply.
struct Access {
  mode_t rights;
  uid_t owner;
  gid_t group;
};

// Appends to a file.
class AppendedFile {
 public:
  // Keeps the first `size` bytes of the file and drops the others. With `access`, the file gets
  // these rights before anything is written, as far as this process may set them, and never wider
  // ones. Without `access`, a new file has the owner and rights of the process (umask). A symbolic
  // link is not followed, since it could lead out of the folder. Throws Error (failure).
  AppendedFile(const std::filesystem::path& path, std::uintmax_t size,
               std::optional<Access> access = std::nullopt);
  ~AppendedFile();
  AppendedFile(const AppendedFile&) = delete;
  AppendedFile& operator=(const AppendedFile&) = delete;

  // Throws Error (failure) naming the file; a part of the text may be written by then.
  void append(std::string_view text);
  // Returns once all appended text is on disk.
  void sync();

 private:
  std::filesystem::path path_;
  int file_;
};

// Replaces a file at once: the new text is written to FILE.part, which is renamed once it is on
// disk. A reader finds either the old text or the new one. FILE.part has the owner, group and
// rights of the old file from its start, so a kill never leaves private text readable to others.
// Without commit() the old file stays. Throws Error (failure).
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

// Throws Error (usage) if the path itself is a symbolic link: in another user's folder, such a link
// may lead to a file of this user.
void refuse_link(const std::filesystem::path& path);

// Replaces the file by one with this text (ReplacedFile).
void replace_file(const std::filesystem::path& path, std::string_view text);

// Removes a file or an empty folder if it exists. Throws Error (failure) if it cannot be removed.
void remove_file(const std::filesystem::path& path);

}  // namespace lambcast
