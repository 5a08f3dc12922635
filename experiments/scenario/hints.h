// Hints for what people type as a flag, a key or a value: what to write instead. A slip that is
// seen again is one more row of the table in hints.cc.
#pragma once

#include <string>
#include <string_view>

namespace lambcast {

enum class Typed {
  flag,
  key,
  exchange,
  value,  // of another flag: "framework=fsdp"
};

// The end of a sentence, "write --global-batch N ..."; empty if there is no row.
std::string_view hint_for(Typed what, std::string_view word);

// Why a text is no count, with the spellings that are: "'64k' may be either: write 64000 or 65536".
// Empty for any other text.
std::string hint_for_count(std::string_view text, bool takes_share);

}  // namespace lambcast
