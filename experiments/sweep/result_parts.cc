#include "experiments/sweep/result_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/scenario/what_if.h"
#include "experiments/sweep/result_row.h"
#include "models/training/run/step_parts.h"
#include "sim/base/csv.h"
#include "sim/base/csv_reader.h"
#include "sim/base/durable_file.h"
#include "sim/base/error.h"

namespace lambcast {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t written_at_once = std::size_t{1} << 20;

const std::vector<std::string>& part_keys() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const std::string& column : result_columns())
      if (column == "settings" ||
          std::any_of(what_if_table().begin(), what_if_table().end(),
                      [&](const WhatIfKey& key) { return key.name == column; }))
        all.push_back(column);
    return all;
  }();
  return names;
}

struct StepColumns {
  std::string kind;
  std::size_t steps;
  std::vector<std::size_t> parts;
};

std::vector<StepColumns> step_columns(const csv::Reader& results) {
  constexpr std::string_view step_time = "_step_time_us";
  std::vector<StepColumns> all;
  for (const std::string& column : result_columns()) {
    if (!column.ends_with(step_time)) continue;
    const std::string kind = column.substr(0, column.size() - step_time.size());
    all.push_back({kind, results.column(kind + "_steps"), {}});
    for (const std::string_view part : step_parts)
      all.back().parts.push_back(results.column(fmt::format("{}_{}_us", kind, part)));
  }
  return all;
}

// Returns whether a header is a selection of part_columns() in their order, with the columns that
// every file has.
bool is_header_of_parts(const std::vector<std::string>& header) {
  const std::vector<std::string>& all = part_columns();
  auto next = all.begin();
  for (const std::string& column : header) {
    next = std::find(next, all.end(), column);
    if (next == all.end()) return false;
    ++next;
  }
  const auto has = [&](const char* column) {
    return std::find(header.begin(), header.end(), column) != header.end();
  };
  return has("row") && has("stage") && has("part") && has("time_us");
}

// Returns the keys that have a value in some row of results.csv.
std::vector<std::string> keys_with_values(const fs::path& path) {
  csv::Reader results = csv::Reader::of_file(path);
  std::vector<std::size_t> columns;
  for (const std::string& key : part_keys()) columns.push_back(results.column(key));
  std::vector<bool> has_value(columns.size());
  while (results.next())
    for (std::size_t i = 0; i < columns.size(); ++i)
      if (!results.text(columns[i]).empty()) has_value[i] = true;
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < columns.size(); ++i)
    if (has_value[i]) keys.push_back(part_keys()[i]);
  return keys;
}

std::vector<std::string> with_figures(const std::vector<std::string>& keys) {
  std::vector<std::string> all{"row"};
  all.insert(all.end(), keys.begin(), keys.end());
  for (const char* name : {"stage", "steps_of_stage", "part", "time_us"}) all.emplace_back(name);
  return all;
}

void refuse_foreign(const fs::path& path) {
  if (fs::exists(path) && !is_header_of_parts(csv::Reader::of_file(path).header()))
    fail_input({path.string(), 0, {}}, "was not written by lambcast, so it is not overwritten",
               "another folder, or move it away");
}

}  // namespace

const std::vector<std::string>& part_columns() {
  static const std::vector<std::string> columns = with_figures(part_keys());
  return columns;
}

fs::path write_parts(const fs::path& folder) {
  refuse_link(folder / "results.csv");
  csv::Reader results = csv::Reader::of_file(folder / "results.csv");
  const std::vector<std::string> keys = keys_with_values(folder / "results.csv");
  std::vector<std::size_t> key_columns;
  for (const std::string& key : keys) key_columns.push_back(results.column(key));
  const std::vector<StepColumns> kinds = step_columns(results);
  const fs::path path = folder / "parts.csv";
  refuse_foreign(path);
  ReplacedFile file(path);
  std::string text = csv::row(with_figures(keys)) + "\n";
  for (std::size_t row = 1; results.next(); ++row) {
    std::string point = fmt::format("{}", row);
    for (const std::size_t column : key_columns) {
      point += ',';
      point += csv::field(results.text(column));
    }
    for (const StepColumns& step : kinds) {
      if (results.text(step.steps).empty()) continue;
      for (std::size_t i = 0; i < step_parts.size(); ++i)
        text += fmt::format("{},{},{},{},{}\n", point, step.kind, results.text(step.steps),
                            step_parts[i], results.text(step.parts[i]));
    }
    if (text.size() < written_at_once) continue;
    file.append(text);
    text.clear();
  }
  file.append(text);
  file.commit();
  return path;
}

}  // namespace lambcast
