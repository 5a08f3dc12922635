// A random secret that rank 0 hands to the other ranks of its launch through a file that only the
// user can read. The name of a job is no secret: everybody on a cluster can list it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace lambcast::validate {

// A file for the ranks of one host, which differs by user and by the port where they meet. Makes
// its folder; throws Error (failure) when others may read or change that folder.
std::filesystem::path token_file_of_host(int port);

// Writes a new token of 256 random bits, readable by the user alone, and removes it at its end.
class TokenFile {
 public:
  // Throws Error (failure) when the file cannot be written.
  explicit TokenFile(std::filesystem::path path);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& token() const { return token_; }

 private:
  std::filesystem::path path_;
  std::string token_;
};

// The token in a file; nothing while there is none. Throws Error (failure) for a file of another
// user, one that others may read, and anything but a regular file.
std::optional<std::string> read_token(const std::filesystem::path& path);

}  // namespace lambcast::validate
