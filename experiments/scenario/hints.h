// Hints for what people type as a flag, a key or a value: what to write instead. A slip that is
// seen again is one more row of the table in hints.cc.
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
  value,  // of another flag: "framework=fsdp"; capitals, spaces, "-" and "_" do not matter
};

// The end of a sentence, "write --global-batch N ..."; empty if there is no row.
std::string_view hint_for(Typed what, std::string_view word);

// Throws Error (usage) for a key that is none of the known ones, with its hint or the nearest of
// them.
[[noreturn]] void fail_unknown_key(const Where& where, const std::string& key,
                                   std::span<const std::string> known);

// Why a text is no count, with the spellings that are: "'64k' may be either: write 64000 or 65536".
// Empty for any other text.
std::string hint_for_count(std::string_view text, bool takes_share);

}  // namespace lambcast
