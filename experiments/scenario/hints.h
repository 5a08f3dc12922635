// Hints for mistyped flags, keys and values: the form to write instead. A further common mistake is
// one more row of the table in hints.cc.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

enum class Typed {
  flag,
  key,
  exchange,
  value,  // value of a flag: "framework=fsdp"; capitals, spaces, "-" and "_" are ignored
};

// Returns the end of a sentence, "write --global-batch N ..."; empty if the table has no such row.
std::string_view hint_for(Typed what, std::string_view word);

// Throws Error (usage) for an unknown key, with its hint or the nearest known key.
[[noreturn]] void fail_unknown_key(const Where& where, const std::string& key,
                                   std::span<const std::string> known);

// Explains why a text is not a valid count, with the spellings to choose from: "'64k' may be
// either: write 64000 or 65536". Empty for any other text.
std::string hint_for_count(std::string_view text, bool takes_share);

}  // namespace lambcast
