#include "validate/calibrate/residuals.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/base/sort_stably.h"
#include "validate/calibrate/calibrate.h"

namespace lambcast::validate {
namespace {

constexpr std::size_t least_rows = 6;  // rows of a table needed to recognise a pattern
constexpr double steady = 0.1;         // relative change up to which times count as constant
constexpr double clear_step = 0.7;     // least logarithm of a step: a factor of two
constexpr double far_more = 1.5;       // ratio of a step to any other change
constexpr std::size_t beside = 4;      // neighbouring sizes from which a row's value is estimated
constexpr double far_beyond = 4;       // ratio of a row's error to the spread of its neighbours

double median_of(const std::vector<Residual>& rows) {
  std::vector<double> values;
  for (const Residual& row : rows) values.push_back(row.slower);
  return quantile(values, 0.5);
}

double median_size_of(const std::vector<Residual>& rows) {
  std::vector<double> values;
  for (const Residual& row : rows) values.push_back(std::abs(row.slower));
  return quantile(values, 0.5);
}

std::string words_for(const Measurement& table) {
  return fmt::format("{} over {} ranks ({})", name_of(table.operation), table.ranks,
                     table.provenance.source);
}

std::string factor_of(double slower) {
  return fmt::format("{:.3g} times {}", std::exp(std::abs(slower)),
                     slower > 0 ? "slower" : "faster");
}

bool is_poor(const std::vector<Residual>& rows, double poor) {
  std::vector<double> off;
  for (const Residual& row : rows) off.push_back(std::abs(row.slower));
  return quantile(off, 0.5) > poor || quantile(off, 0.9) > 2 * poor;
}

// Returns the table with the largest residuals, if they are poor and more than twice those of any
// other table.
std::optional<std::size_t> table_apart(const std::vector<std::vector<Residual>>& by_table,
                                       double poor) {
  if (by_table.size() < 3) return std::nullopt;
  std::vector<double> off;
  for (const auto& rows : by_table) off.push_back(median_size_of(rows));
  const auto worst =
      static_cast<std::size_t>(std::max_element(off.begin(), off.end()) - off.begin());
  std::vector<double> others = off;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(worst));
  const double next = *std::max_element(others.begin(), others.end());
  if (off[worst] > poor && off[worst] > 2 * next) return worst;
  return std::nullopt;
}

std::optional<std::string> waiting(const Measurement& table) {
  constexpr double large = 1048576, eightfold = 8, a_wait_s = 0.05;
  double first = 0, last = 0, shortest = 0, longest = 0;
  for (const Row& row : table.rows) {
    const double size = row.size.value(), time = row.time.s();
    if (size < large || time < a_wait_s) continue;
    if (first == 0) first = size, shortest = longest = time;
    const double low = std::min(shortest, time), high = std::max(longest, time);
    if (high > low * (1 + 2 * steady)) break;
    last = size;
    shortest = low;
    longest = high;
  }
  if (first == 0 || last < first * eightfold) return std::nullopt;
  return fmt::format(
      "takes {:.3g} ms from {} to {}, whatever the size: packets are lost where many send to one "
      "(TCP waits 200 ms before it sends them again)",
      (shortest + longest) / 2 * 1e3, to_text(Bytes(first)), to_text(Bytes(last)));
}

struct Step {
  std::size_t at = 0;  // index of the first row after the step
  double by = 0;
};

// Returns the largest step between consecutive rows, if it is far larger than any other and the two
// rows on either side agree with it.
std::optional<Step> step_of(const std::vector<Residual>& rows) {
  std::vector<double> jumps;
  for (std::size_t i = 1; i < rows.size(); ++i)
    jumps.push_back(std::abs(rows[i].slower - rows[i - 1].slower));
  const auto most = std::max_element(jumps.begin(), jumps.end());
  const auto at = static_cast<std::size_t>(most - jumps.begin()) + 1;
  const double jump = *most;
  *most = 0;
  if (at < 2 || at + 2 > rows.size()) return std::nullopt;
  if (jump < clear_step || jump < far_more * *std::max_element(jumps.begin(), jumps.end()))
    return std::nullopt;
  const double by =
      (rows[at].slower + rows[at + 1].slower) / 2 - (rows[at - 1].slower + rows[at - 2].slower) / 2;
  return std::abs(by) > clear_step ? std::optional(Step{at, by}) : std::nullopt;
}

// Returns whether the rows alternate around their median more often than a smooth curve would.
bool scattered(const std::vector<Residual>& rows) {
  double products = 0, squares = 0;
  const double middle = median_of(rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    squares += std::pow(rows[i].slower - middle, 2);
    if (i > 0) products += (rows[i].slower - middle) * (rows[i - 1].slower - middle);
  }
  return products < 0.2 * squares;
}

// Returns the logarithm of how much slower row i (rows sorted by size) is than its nearest
// neighbours, if it is far off.
std::optional<double> apart_from_neighbours(const std::vector<Residual>& rows, std::size_t i) {
  const std::size_t first = std::min(i - std::min(i, beside / 2), rows.size() - beside - 1);
  std::vector<double> near, apart;
  for (std::size_t j = first; j <= first + beside; ++j)
    if (j != i) near.push_back(rows[j].slower);
  const double middle = quantile(near, 0.5);
  for (const double value : near) apart.push_back(std::abs(value - middle));
  const double off = rows[i].slower - middle;
  if (std::abs(off) < clear_step || std::abs(off) < far_beyond * quantile(apart, 0.5))
    return std::nullopt;
  return off;
}

// Names rows far from their neighbours; combines rows of several tables with the same size.
std::vector<std::string> rows_apart(std::span<const Measurement> tables,
                                    std::vector<std::vector<Residual>> by_table) {
  struct Apart {
    std::string words;
    double most = 0;
    int tables = 0;
  };
  std::map<std::pair<Bytes, bool>, Apart> by_size;
  for (auto& rows : by_table) {
    if (rows.size() < least_rows) continue;
    sort_stably(rows, {}, &Residual::size);
    std::vector<std::pair<std::size_t, double>> found;
    for (std::size_t i = 0; i < rows.size(); ++i)
      if (const auto off = apart_from_neighbours(rows, i)) found.emplace_back(i, *off);
    if (found.size() * 4 > rows.size()) continue;  // too many such rows: the table scatters
    for (const auto& [i, off] : found) {
      Apart& apart = by_size[{rows[i].size, off > 0}];
      ++apart.tables;
      if (std::abs(off) < std::abs(apart.most)) continue;
      apart.most = off;
      apart.words = words_for(tables[rows[i].table]);
    }
  }
  std::vector<std::string> words;
  for (const auto& [size, apart] : by_size)
    words.push_back(
        fmt::format("the row of {:.0f} B in {}{} is {} than the sizes beside it say: measure it "
                    "again, or leave it "
                    "out.",
                    size.first.value(), apart.words,
                    apart.tables > 1 ? fmt::format(" and of {} more", apart.tables - 1) : "",
                    factor_of(apart.most)));
  return words;
}

std::optional<std::string> shape_of(const Measurement& table, std::vector<Residual> rows) {
  if (const auto words = waiting(table)) return words;
  if (rows.size() < least_rows) return std::nullopt;
  sort_stably(rows, {}, &Residual::size);
  if (const auto step = step_of(rows))
    return fmt::format(
        "from {} on it is {} than below, as fitted: another algorithm, protocol or number of NICs "
        "takes over there (say it as nccl.algorithms, nccl.protocols, or calibrate with one part)",
        to_text(rows[step->at].size), factor_of(step->by));
  if (scattered(rows))
    return fmt::format(
        "its rows scatter by {:.0f} % from one size to the next: was the machine busy?",
        std::expm1(median_size_of(rows)) * 100);
  return std::nullopt;
}

}  // namespace

std::vector<std::string> misfits_of(std::span<const Measurement> tables,
                                    const std::vector<Residual>& residuals, double poor) {
  std::vector<std::vector<Residual>> by_table(tables.size());
  for (const Residual& row : residuals) by_table[row.table].push_back(row);
  std::vector<std::string> words = rows_apart(tables, by_table);
  std::vector<std::vector<Residual>> with_rows;
  std::vector<std::size_t> which;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    if (by_table[t].empty()) continue;
    with_rows.push_back(by_table[t]);
    which.push_back(t);
  }
  if (const auto apart = table_apart(with_rows, poor)) {
    words.push_back(fmt::format(
        "{} is {} than the other tables say: is it of the same machine, and what it is called?",
        words_for(tables[which[*apart]]), factor_of(median_of(with_rows[*apart]))));
    return words;
  }
  for (std::size_t i = 0; i < which.size(); ++i) {
    if (!is_poor(with_rows[i], poor)) continue;
    const Measurement& table = tables[which[i]];
    if (const auto shape = shape_of(table, with_rows[i]))
      words.push_back(
          fmt::format("{}: {}{}", words_for(table), *shape, shape->ends_with('?') ? "" : "."));
  }
  return words;
}

}  // namespace lambcast::validate
