// Shell arithmetic: 64-bit integers, all operators of bash, and assignments to bare names.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lambcast::megatron {

struct ArithmeticNames {
  // Returns the value of a name, or nothing if it has none.
  std::function<std::optional<std::int64_t>(const std::string&)> value;
  // Assigns a value. It is not called for operands of && || ?: that are not evaluated.
  std::function<void(const std::string&, std::int64_t)> assign;
};

// Returns nothing for a name without a value, a division by zero, and unsupported syntax, such as
// octal numbers, numbers with a base and elements of arrays.
std::optional<std::int64_t> arithmetic(std::string_view text, const ArithmeticNames& names);

}  // namespace lambcast::megatron
