// Error in one value, independent of the other values: not a number, an unknown word, a file that
// cannot be read. A sweep with such a value stops before it starts. An error in a combination of
// values is an ordinary Error; it becomes the reason in that point's row.
#pragma once

#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

class InvalidValue : public Error {
 public:
  InvalidValue(std::string_view key, const std::string& message)
      : Error(Exit::usage, message), key_(key) {}
  // Returns the key of the WhatIf that holds the value, or "cluster.", "device." or "model." for a
  // key below it. Such a key depends on the description that it changes, and on the description's
  // other keys.
  const std::string& key() const { return key_; }

 private:
  std::string key_;
};

// Calls `read` and reports its Errors as errors of the value of `key`.
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
