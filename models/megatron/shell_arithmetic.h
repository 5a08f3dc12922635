// Shell arithmetic: 64-bit integers with + - * / %, comparisons, && || and parentheses.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast::megatron {

// Returns the value of a bare name, or nothing if it has none.
using NameValue = std::function<std::optional<std::int64_t>(const std::string&)>;

// Returns nothing for a name without a value, a division by zero, and other syntax.
std::optional<std::int64_t> arithmetic(std::string_view text, const NameValue& value_of);

}  // namespace lambcast::megatron
