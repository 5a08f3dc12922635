#include "tools/size.h"

#include <fmt/format.h>

#include <charconv>
#include <string_view>

#include "sim/base/error.h"

namespace lambcast {

double parse_size(const std::string& text, const char* flag) {
  double number = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view suffix(end, static_cast<std::size_t>(text.data() + text.size() - end));
  double scale = 1;
  if (suffix == "K" || suffix == "k")
    scale = 0x1p10;
  else if (suffix == "M" || suffix == "m")
    scale = 0x1p20;
  else if (suffix == "G" || suffix == "g")
    scale = 0x1p30;
  else if (suffix == "T" || suffix == "t")
    scale = 0x1p40;
  else if (suffix == "P" || suffix == "p")
    scale = 0x1p50;
  else if (!suffix.empty())
    scale = 0;
  // Rejects "1MB", which may or may not mean 1,000,000 bytes.
  if (suffix.size() >= 2 && suffix.ends_with('B') &&
      std::string_view("KMGTPkmgtp").find(suffix[0]) != std::string_view::npos)
    fail_input(
        {"", 0, flag},
        fmt::format("'{}' is ambiguous: write {:g}{} for powers of 1024, or the number of bytes",
                    text, number, suffix[0]));
  if (status != std::errc{} || scale == 0 || !(number >= 1) || number * scale > 0x1p50)
    fail_input({"", 0, flag}, fmt::format("'{}' is not a size", text),
               "1 to 1P: bytes, or with K, M, G, T or P for powers of 1024");
  return number * scale;
}

}  // namespace lambcast
