// Records the keys that readers of descriptions (table.h) look up, with their types. The reference
// of keys comes from the readers themselves, so none is missing and none is stale.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lambcast {

// Records the keys of all tables that this thread reads during its lifetime; one at a time.
class AskedKeys {
 public:
  AskedKeys();
  ~AskedKeys();
  AskedKeys(const AskedKeys&) = delete;
  AskedKeys& operator=(const AskedKeys&) = delete;

  // By dotted path, elements of lists as "kernel[]": "bandwidth, with source", "whole 1 to 256",
  // "rdma, socket"; "table" for what has keys below it. In the order of the paths.
  const std::map<std::string, std::string>& keys() const { return keys_; }

  // Called by tables: whether a recorder is active, and the key that was looked up. The first
  // non-empty description of a key is kept.
  static bool anyone();
  static void note(std::string_view path, std::string_view what);

 private:
  std::map<std::string, std::string> keys_;
};

}  // namespace lambcast
