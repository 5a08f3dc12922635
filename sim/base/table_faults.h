// Refuses texts and keys of descriptions that no reader takes.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace lambcast {

// Throws Error (usage) if a text contains control characters: names and sources are printed
// unchanged, so such a text could control the terminal. Line ends are allowed in long texts.
void refuse_control_characters(std::string text, const Where& where);

// Throws Error (usage) that suggests the nearest key of the same table (`allowed`), or the keys of
// the whole description (`all`, dotted) that end with the same word: nic.bandwidth for bandwidth.
[[noreturn]] void fail_unread_key(const Where& where, std::string_view key,
                                  std::span<const std::string> allowed,
                                  const std::vector<std::string>& all);

}  // namespace lambcast
