// Two sweeps that write into one folder would mix their rows.
#pragma once

#include <sys/file.h>

#include <filesystem>
#include <string>

namespace lambcast {

// A lock on a folder (flock), which ends with the process, however that ends.
class FolderLock {
 public:
  // Throws Error (usage) where another process holds it, and for a folder that cannot be read or
  // written. Some network file systems have no such lock: that is told by `note`, and no error.
  // `lock` is for tests.
  explicit FolderLock(const std::filesystem::path& folder, int (*lock)(int, int) = flock);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  // A note for the user, or empty.
  const std::string& note() const { return note_; }

 private:
  int file_;
  std::string note_;
};

}  // namespace lambcast
