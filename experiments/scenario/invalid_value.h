// An error of one value that is independent of the other values: not a number, an unknown word, a
// file that cannot be read. A sweep stops before it starts if an axis holds one. An error of a
// combination of values is an ordinary Error, and the reason in that point's row.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

class InvalidValue : public Error {
 public:
  InvalidValue(std::string_view key, const std::string& message)
      : Error(Exit::usage, message), key_(key) {}
  // The key of the WhatIf that holds the value, or "cluster.", "device." or "model." for some key
  // below. Such a key depends on the description that it changes, and on others that change it too.
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

// Calls `read`, whose Errors are those of `key`'s value.
template <typename Read>
auto of_key(std::string_view key, Read read) {
  try {
    return read();
  } catch (const InvalidValue&) {
    throw;
  } catch (const Error& error) {
    throw InvalidValue(key, error.what());
  }
}

}  // namespace lambcast
