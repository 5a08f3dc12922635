// Keys of a description that flags change, and whose fault an error is then.
//
// A preset is right as it ships, so what is wrong with a changed one was typed: the flag is named,
// not a line of a file that the user does not have.
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

// Whether the table already has this value at the dotted key, with or without evidence and in any
// unit: "200Gbit/s" is "25 GB/s" too.
bool says(const Table& table, const std::string& key, const std::string& value);

// The overrides that change the description; the others leave it its evidence.
Overrides changes_of(const Table& table, const Overrides& overrides);

// `error` with the flags in front, unless it names one already. `preset`: "NAME.toml", the place in
// which is left out; empty for a file of the user's own.
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
