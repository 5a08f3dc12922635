#include "experiments/output/interval_axis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/output/cell.h"

namespace lambcast {
namespace {

constexpr std::size_t least_length = 20;

}  // namespace

std::string interval_axis(const std::string& title, const std::vector<AxisEntry>& entries,
                          const std::string& zero, const std::string& end) {
  if (entries.empty()) return "";
  std::size_t width = title.size();
  double most = 0;
  for (const AxisEntry& entry : entries) {
    width = std::max(width, entry.name.size());
    most = std::max(most, entry.high);
  }
  const std::size_t length =
      width + 1 + least_length < page_width ? page_width - width - 1 : least_length;
  std::string out = fmt::format("{:<{}} {}{:>{}}\n", title, width, zero, end, length - zero.size());
  for (const AxisEntry& entry : entries) {
    const auto place = [&](double value) {
      return static_cast<std::size_t>(std::lround(value / most * static_cast<double>(length - 1)));
    };
    std::string bar(place(entry.high) + 1, ' ');
    std::fill(bar.begin() + static_cast<std::ptrdiff_t>(place(entry.low)), bar.end(), '-');
    bar[place(entry.low)] = '[';
    bar[place(entry.high)] = ']';
    bar[place(entry.value)] = 'o';
    out += fmt::format("{:<{}} {}\n", entry.name, width, bar);
  }
  return out;
}

}  // namespace lambcast
