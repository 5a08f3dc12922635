// Records the keys that readers of descriptions (table.h) look up, with their types. The key
// reference (`lambcast help`) is generated from these records, so it is complete and up to date.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace lambcast {

// Records the keys of all tables that this thread reads during the object's lifetime. Only one such
// object may exist at a time.
class AskedKeys {
 public:
  AskedKeys();
  ~AskedKeys();
  AskedKeys(const AskedKeys&) = delete;
  AskedKeys& operator=(const AskedKeys&) = delete;

  // The type of each key in words, by dotted path and in path order: "bandwidth, with source",
  // "whole 1 to 256", "rdma, socket", or "table". Elements of lists are written as "kernel[]".
  const std::map<std::string, std::string>& keys() const { return keys_; }

  // Used by tables: anyone() returns whether a recorder is active, note() records a key. The first
  // non-empty description of a key is kept.
  static bool anyone();
  static void note(std::string_view path, std::string_view what);

 private:
  std::map<std::string, std::string> keys_;
};

}  // namespace lambcast
