// A random secret that rank 0 passes to the other ranks of its launch through a file that only the
// user can read. The name of a job is not secret: all users of a cluster can list it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lambcast::validate {

// Returns the path of a file for the ranks of one host; it depends on the user and the port where
// they meet. Creates its folder; throws Error (failure) if others may read or change that folder.
std::filesystem::path token_file_of_host(int port);

// Writes a new token of 256 random bits that only the user can read. The destructor removes it.
class TokenFile {
 public:
  // Throws Error (failure) if the file cannot be written.
  explicit TokenFile(std::filesystem::path path);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& token() const { return token_; }

 private:
  std::filesystem::path path_;
  std::string token_;
};

// Returns the token in a file; nothing if there is no file yet. Throws Error (failure) for a file
// of another user, one that others may read, and anything except a regular file.
std::optional<std::string> read_token(const std::filesystem::path& path);

}  // namespace lambcast::validate
