#include "experiments/phases/freeze_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <map>
#include <set>

#include "experiments/scenario/words.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

constexpr double most_steps = 1e9;

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}
bool says_loss(const std::string& column) {
  return lower(column).find("loss") != std::string::npos;
}

double checked(double value, const Where& where) {
  if (!std::isfinite(value) || value < 0)
    fail_input(where, fmt::format("{} is neither a norm nor a loss", value), "0 and more");
  return value;
}
int checked_step(double step, const Where& where) {
  if (!(step >= 0 && step <= most_steps) || step != std::floor(step))
    fail_input(where, fmt::format("{} is not a step", step), "whole numbers from 0 to 1e9");
  return static_cast<int>(step);
}

void add_measurement(FreezeLog& log, int step, std::vector<double> values, int line) {
  if (!log.steps.empty() && step <= log.steps.back())
    fail_input({log.name, line, "step"}, fmt::format("{} follows {}", step, log.steps.back()),
               "rising steps");
  if (log.steps.size() == 1) log.interval = step - log.steps.back();
  if (log.steps.size() > 1 && step - log.steps.back() != log.interval)
    fail_input(
        {log.name, line, "step"},
        fmt::format("{} follows {} where steps are {} apart", step, log.steps.back(), log.interval),
        "the same interval throughout");
  log.steps.push_back(step);
  log.values.push_back(std::move(values));
}

// Parses a number at the start of `line` and removes it together with the separator that follows.
std::optional<double> take_number(std::string_view& line) {
  double value = 0;
  const auto [end, status] = std::from_chars(line.data(), line.data() + line.size(), value);
  if (status != std::errc{}) return std::nullopt;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  const std::size_t next = std::min(line.find_first_not_of(" \t,;\r"), line.size());
  if (next == 0 && !line.empty()) return std::nullopt;
  line.remove_prefix(next);
  return value;
}

void read_plain(FreezeLog& log, std::string_view text) {
  int number = 0;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    ++number;
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    if (line.empty() || line.front() == '#') continue;
    std::vector<double> values;
    while (!line.empty()) {
      const auto value = take_number(line);
      if (!value)
        fail_input({log.name, number, ""}, "is not a line of numbers", "a step, then its values");
      values.push_back(*value);
    }
    const int step = checked_step(values.front(), {log.name, number, "step"});
    values.erase(values.begin());
    if (log.steps.empty()) {
      for (std::size_t i = 0; i < values.size(); ++i)
        log.layers.push_back(fmt::format("{}", i + 1));
    }
    if (values.empty() || values.size() != log.layers.size())
      fail_input({log.name, number, ""}, fmt::format("{} values where the first line has {}",
                                                     values.size(), log.layers.size()));
    for (const double value : values) checked(value, {log.name, number, ""});
    add_measurement(log, step, std::move(values), number);
  }
}

void read_columns(FreezeLog& log, const csv::Table& table,
                  const std::vector<std::string>& columns) {
  for (const std::string& title : table.header) {
    const bool wanted = columns.empty() || std::ranges::find(columns, title) != columns.end();
    if (title != "step" && wanted) log.layers.push_back(title);
  }
  for (const std::string& wanted : columns) {
    if (!table.has(wanted))
      fail_unknown({log.name, 0, "--columns"}, "column", wanted, table.header);
  }
  const bool mixed = log.layers.size() > 1 && std::ranges::any_of(log.layers, says_loss);
  if (mixed && columns.empty())
    fail_input({log.name, 0, ""}, "has a column of losses among others",
               "--columns with the norms, or with the loss alone");
  if (log.layers.empty()) fail_input({log.name, 0, ""}, "has no column but the step");
  log.losses = log.losses || (log.layers.size() == 1 && says_loss(log.layers.front()));
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<double> values;
    for (const std::string& layer : log.layers)
      values.push_back(checked(table.number(r, layer), {log.name, table.lines[r], layer}));
    const int step = checked_step(table.number(r, "step"), {log.name, table.lines[r], "step"});
    add_measurement(log, step, std::move(values), table.lines[r]);
  }
}

// Reads a table with one row per step and layer, sorted by step. Every step must have the layers of
// the first.
void read_rows(FreezeLog& log, const csv::Table& table) {
  const bool weighed = table.has("elements");
  std::vector<double> values;
  int step = 0;
  const auto finish = [&](int line) {
    if (values.empty()) return;
    if (values.size() != log.layers.size())
      fail_input({log.name, line, "layer"}, fmt::format("step {} has {} of {} layers", step,
                                                        values.size(), log.layers.size()));
    add_measurement(log, step, std::move(values), line);
    values.clear();
  };
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const int line = table.lines[r];
    const int next = checked_step(table.number(r, "step"), {log.name, line, "step"});
    if (next != step) finish(line);
    step = next;
    const std::string& layer = table.text(r, "layer");
    if (log.steps.empty()) {
      if (std::ranges::find(log.layers, layer) != log.layers.end())
        fail_input({log.name, line, "layer"}, fmt::format("'{}' occurs twice in a step", layer));
      const double elements = weighed ? table.number(r, "elements") : 1;
      if (!(elements >= 1 && elements <= 1e15) || elements != std::floor(elements))
        fail_input({log.name, line, "elements"}, fmt::format("{}", elements), "1 to 1e15");
      log.layers.push_back(layer);
      log.elements.push_back(static_cast<std::size_t>(elements));
    } else if (values.size() >= log.layers.size() || layer != log.layers[values.size()]) {
      fail_input({log.name, line, "layer"}, fmt::format("'{}' is out of order", layer),
                 "the layers of the first step, in its order");
    }
    values.push_back(checked(table.number(r, "norm"), {log.name, line, "norm"}));
  }
  finish(table.lines.empty() ? 0 : table.lines.back());
}

bool has_header(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\r\n");
  while (first != std::string_view::npos && text[first] == '#') {
    const std::size_t end = text.find('\n', first);
    first = text.find_first_not_of(" \t\r\n", end);
  }
  return first == std::string_view::npos ||
         std::isdigit(static_cast<unsigned char>(text[first])) == 0;
}

// Returns the moving average of the log over `window` measurements, from the window-th one on.
FreezeLog smoothed(const FreezeLog& log, std::size_t window) {
  FreezeLog means = log;
  means.steps.clear();
  means.values.clear();
  for (std::size_t i = window; i <= log.values.size(); ++i) {
    std::vector<double> mean(log.layers.size());
    for (std::size_t k = i - window; k < i; ++k) {
      for (std::size_t t = 0; t < mean.size(); ++t)
        mean[t] += log.values[k][t] / static_cast<double>(window);
    }
    means.steps.push_back(log.steps[i - 1]);
    means.values.push_back(std::move(mean));
  }
  return means;
}

double share_settled(const FreezeLog& log, const reference::FreezeOptions& options, std::size_t at,
                     std::size_t apart) {
  std::size_t all = 0, settled = 0;
  for (std::size_t t = 0; t < log.layers.size(); ++t) {
    all += log.elements[t];
    if (reference::settled(options, log.values[at - apart][t], log.values[at][t]))
      settled += log.elements[t];
  }
  return static_cast<double>(settled) / static_cast<double>(all);
}

std::vector<LayerChange> changes(const FreezeLog& log, const reference::FreezeOptions& options,
                                 std::size_t at, std::size_t apart) {
  std::vector<LayerChange> layers;
  for (std::size_t t = 0; t < log.layers.size(); ++t) {
    LayerChange layer{.name = log.layers[t],
                      .elements = log.elements[t],
                      .before = log.values[at - apart][t],
                      .now = log.values[at][t]};
    for (std::size_t k = at; k >= apart; --k) {
      if (!reference::settled(options, log.values[k - apart][t], log.values[k][t])) break;
      layer.settled = true;
      layer.settled_since = log.steps[k];
      if (k == 0) break;
    }
    layers.push_back(std::move(layer));
  }
  return layers;
}

}  // namespace

FreezeLog parse_freeze_log(std::string_view text, const std::string& name,
                           const std::vector<std::string>& columns, bool losses) {
  FreezeLog log;
  log.name = name;
  log.losses = losses;
  if (has_header(text)) {
    const csv::Table table = csv::parse(text, name);
    table.column("step");
    const bool by_layer = table.has("layer") && table.has("norm");
    if (by_layer && !columns.empty())
      fail_input({name, 0, "--columns"}, "names columns of a log that has a row for each layer",
                 "a log with a column for each layer, or no --columns");
    if (by_layer)
      read_rows(log, table);
    else
      read_columns(log, table, columns);
  } else if (!columns.empty()) {
    fail_input({name, 0, "--columns"}, "names columns, and the log has no header",
               "a first line of titles, or no --columns");
  } else {
    read_plain(log, text);
  }
  log.elements.resize(log.layers.size(), 1);
  if (log.steps.size() < 2) fail_input({name, 0, ""}, "has fewer than two measurements");
  return log;
}

FreezeChoice choose_freeze_step(const FreezeLog& read, reference::FreezeOptions options) {
  options.interval = read.interval;
  auto monitor = reference::freeze_monitor(tensor_layout(read.elements), options);
  const std::size_t apart = reference::measurements(options);
  const FreezeLog log = read.losses ? smoothed(read, apart) : read;
  if (log.values.size() <= apart)
    fail_input({read.name, 0, ""},
               fmt::format("its {} measurements, {} steps apart, are too few", read.steps.size(),
                           read.interval),
               fmt::format("{} and more: beta2 {} averages over {} steps",
                           (read.losses ? 2 * apart : apart + 1), options.beta2,
                           reference::memory(options)));
  FreezeChoice choice;
  choice.options = options;
  choice.losses = read.losses;
  choice.first_step = read.steps.front();
  choice.last_step = read.steps.back();
  std::size_t at = 0;
  while (at < log.values.size() && !may_freeze(monitor, log.steps[at], log.values[at])) ++at;
  at = std::min(at, log.values.size() - 1);
  if (at < apart)
    fail_input(flag("latest"),
               fmt::format("step {} is too early: the variance averages over {} steps",
                           log.steps[at], reference::memory(options)),
               fmt::format("{} and later", log.steps[apart]));
  choice.step = monitor.frozen_at;
  choice.judged_at = log.steps[at];
  choice.share = share_settled(log, options, at, apart);
  choice.share_before = at > apart ? share_settled(log, options, at - 1, apart) : -1;
  choice.layers = changes(log, options, at, apart);
  return choice;
}

}  // namespace lambcast
