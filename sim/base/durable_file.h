// Files that outlive a kill and a power cut: a sweep of hours must find its rows again, and whoever
// opens a page or a table finds all of it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast {

// Whether an error number is of a disk that is full or at fault, and not of a path that is wrong.
bool is_of_disk(int error);

// Through a second file that is renamed once it is on disk, so that a reader finds the old text or
// the new one, under the rights that the old one had: the second file has them from its start, so
// that a kill at no moment opens to others what only its owner may read. Throws Error (failure)
// where that cannot be done.
void replace_file(const std::filesystem::path& path, std::string_view text);

// Writes behind what a file holds.
class AppendedFile {
 public:
  // Keeps the first `size` bytes and drops what stands behind them. With `rights`, the file has
  // these before anything is written; a new file without has those of the process (umask).
  AppendedFile(const std::filesystem::path& path, std::uintmax_t size,
               std::optional<std::filesystem::perms> rights = std::nullopt);
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

}  // namespace lambcast
