// Keeps two sweeps from writing into one folder, which would mix their rows.
#pragma once

#include <sys/file.h>

#include <filesystem>
#include <string>

namespace lambcast {

// A lock on a folder (flock). It ends with the process, also if the process is killed.
class FolderLock {
 public:
  // Locks the folder. Throws Error (usage) if another process holds the lock, and for a folder that
  // cannot be read or written. Some network file systems have no such lock: then `note` states it,
  // and there is no error. `lock` is for tests.
  explicit FolderLock(const std::filesystem::path& folder, int (*lock)(int, int) = flock);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // Returns a note for the user; may be empty.
  const std::string& note() const { return note_; }

 private:
  int file_;
  std::string note_;
};

}  // namespace lambcast
