#include "validate/importers/rank_count.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

// Ends of the interval of the ratio r = busbw / algbw, if each bandwidth is off by up to its
// rounding.
struct Ratio {
  double low = 0;
  double high = 0;
};

Ratio ratio_of(const PrintedBandwidth& row) {
  return {(row.busbw - row.rounding) / (row.algbw + row.rounding),
          (row.busbw + row.rounding) / (row.algbw - row.rounding)};
}

bool is_usable(const PrintedBandwidth& row) { return row.algbw > 4 * row.rounding; }

// Returns the real number of ranks with this ratio: r = 2(n-1)/n or (n-1)/n.
double ranks_of(Operation operation, double ratio) {
  const double scale = bus_factor(operation, 2) == 1 ? 2 : 1;
  return ratio < scale ? scale / (scale - ratio) : INFINITY;
}

}  // namespace

void check_algbw(double size_bytes, std::string_view time_us, std::string_view algbw_GBps,
                 const Where& where) {
  const double us = as_number(time_us).value_or(0);
  const double expected = size_bytes / us / 1e3;
  const double tolerance =
      expected * (rounding_of(time_us) / us + 0.005) + rounding_of(algbw_GBps) * 1.01;
  if (std::abs(expected - as_number(algbw_GBps).value_or(0)) > tolerance)
    fail_input(where, fmt::format("size / time is {:.2f} GB/s but algbw is {}: the columns do "
                                  "not line up",
                                  expected, algbw_GBps));
}

std::optional<int> ranks_from_ratio(Operation operation,
                                    const std::vector<PrintedBandwidth>& rows) {
  if (bus_factor(operation, 2) == bus_factor(operation, 3)) return {};
  double low = 1;
  double high = INFINITY;
  for (const PrintedBandwidth& row : rows) {
    if (!is_usable(row)) continue;
    const Ratio ratio = ratio_of(row);
    low = std::max(low, ranks_of(operation, ratio.low));
    high = std::min(high, ranks_of(operation, ratio.high));
  }
  const double only = std::ceil(low - 1e-9);
  if (!(only <= high + 1e-9) || only + 1 <= high || only < 1 || only > 1e6) return {};
  return static_cast<int>(only);
}

void check_ratio(Operation operation, int ranks, const std::vector<PrintedBandwidth>& rows,
                 const std::string& file) {
  const double factor = bus_factor(operation, ranks);
  for (const PrintedBandwidth& row : rows) {
    if (!is_usable(row)) continue;
    const Ratio ratio = ratio_of(row);
    if (factor < ratio.low - 1e-6 || factor > ratio.high + 1e-6) {
      fail_input({file, row.line, {}},
                 fmt::format("busbw / algbw is {:.3f} where {} over {} ranks has {:.3f}: the "
                             "collective or the number of ranks is another",
                             row.busbw / row.algbw, name_of(operation), ranks, factor));
    }
  }
}

void check_even_hosts(const std::map<std::string, int>& ranks_of_host, const Where& where) {
  for (const auto& [host, ranks] : ranks_of_host)
    if (const auto& [first, of_first] = *ranks_of_host.begin(); ranks != of_first)
      fail_input(where,
                 fmt::format("{} has {} ranks and {} has {}: nodes with different numbers of ranks "
                             "are not modelled",
                             first, of_first, host, ranks),
                 "as many ranks on each node");
}

}  // namespace lambcast::validate
