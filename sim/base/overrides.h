// Keys of a description that flags change, and errors caused by such flags.
//
// Presets are correct as shipped, so an error in a changed preset comes from a flag. The error then
// names the flag, not a line of a file that the user does not have.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/table.h"

namespace lambcast {

// Key and value as text, in the order given.
using Overrides = std::vector<std::pair<std::string, std::string>>;

// Returns whether the table already has this value at the dotted key. Evidence and units are
// ignored: "200Gbit/s" equals "25 GB/s".
bool says(const Table& table, const std::string& key, const std::string& value);

// Returns the overrides that change a value. The others are dropped, so that the description keeps
// its evidence.
Overrides changes_of(const Table& table, const Overrides& overrides);

// Returns `error` with the flags in front of its message, unless it names a flag already. `preset`
// is the place "NAME.toml", which the message then leaves out; it is empty for the user's own file.
Error blame_flags(const Error& error, const std::string& preset,
                  std::span<const std::string> flags);

template <typename Decode>
auto decode_overridden(const std::string& preset, std::span<const std::string> flags,
                       const Decode& decode) {
  try {
    return decode();
  } catch (const Error& error) {
    if (flags.empty()) throw;
    throw blame_flags(error, preset, flags);
  }
}

}  // namespace lambcast
