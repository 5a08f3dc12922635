#include "models/deepspeed/python_number.h"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace lambcast::deepspeed {

bool is_python_number(std::string_view text) {
  const auto skip = [&](char c) {
    const bool there = text.starts_with(c);
    if (there) text.remove_prefix(1);
    return there;
  };
  const auto skip_digits = [&] {
    const std::size_t count = std::min(text.find_first_not_of("0123456789"), text.size());
    text.remove_prefix(count);
    return count > 0;
  };
  skip('-');
  if (!skip('0') && !skip_digits()) return false;
  if (skip('.') && !skip_digits()) return false;
  if (skip('e') || skip('E')) {
    if (!skip('-')) skip('+');
    if (!skip_digits()) return false;
  }
  return text.empty();
}

std::optional<PythonNumber> python_number(std::string_view text) {
  const char* end = text.data() + text.size();
  PythonNumber number;
  if (std::from_chars(text.data(), end, number.real).ec != std::errc{}) return std::nullopt;
  std::int64_t whole = 0;
  const auto [stop, status] = std::from_chars(text.data(), end, whole);
  if (status == std::errc{} && stop == end)
    number.whole = whole;
  else if (std::abs(number.real) <= 0x1p53 && std::trunc(number.real) == number.real)
    number.whole = static_cast<std::int64_t>(number.real);
  return number;
}

}  // namespace lambcast::deepspeed
