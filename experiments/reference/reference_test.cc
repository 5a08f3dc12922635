// Every name has exactly one explanation, and every explanation belongs to a name.
#include "experiments/reference/reference.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <sstream>

#include "experiments/scenario/what_if.h"
#include "experiments/sweep/result_parts.h"
#include "experiments/sweep/result_row.h"
#include "experiments/verdict/reference_words.h"
#include "models/training/plan/distinct_steps.h"

namespace lambcast {
namespace {

using Names = std::vector<std::string>;

// Returns the cells of a row of a Markdown table.
Names cells(const std::string& line) {
  Names found;
  std::istringstream row(line.substr(2));
  for (std::string cell; std::getline(row, cell, '|');) {
    if (cell.ends_with('\\')) {
      std::string rest;
      std::getline(row, rest, '|');
      cell += rest;
    }
    found.push_back(cell.substr(cell.find_first_not_of(' ') == std::string::npos
                                    ? cell.size()
                                    : cell.find_first_not_of(' ')));
  }
  return found;
}

// Returns the lines that explain no existing name.
Names unused(std::string_view section, const Names& names) {
  std::set<std::string> used;
  const Names lines = explained(section);
  for (const std::string& name : names) {
    const bool whole = std::ranges::find(lines, name) != lines.end();
    used.insert(whole ? name : name.substr(name.rfind('.') + 1));
  }
  Names left;
  for (const std::string& line : lines)
    if (!used.contains(line)) left.push_back(line);
  return left;
}

// Returns the names below a heading of a topic.
Names listed(std::string_view topic, const std::string& heading) {
  Names names;
  std::istringstream text(reference_text(topic));
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    if (!line.empty() && line[0] != ' ') inside = line == heading;
    if (inside && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  return names;
}

TEST_CASE("reference: no name without an explanation") {
  std::istringstream page(reference_page());
  std::string heading;
  int names = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("##")) heading = line;
    if (!line.starts_with("| `")) continue;
    INFO(heading << ": " << line);
    const Names row = cells(line);
    REQUIRE(row.size() >= 3);
    CHECK(row[2].size() > 3);
    ++names;
  }
  CHECK(names > 900);
}

TEST_CASE("reference: no explanation without a name") {
  CHECK(unused("finding", finding_codes()).empty());
  Names columns = result_columns(), of_run, of_steps;
  columns.insert(columns.end(), part_columns().begin(), part_columns().end());
  constexpr std::string_view step_time = "_step_time_us";
  Names kinds;
  for (const std::string& column : columns)
    if (column.ends_with(step_time))
      kinds.push_back(column.substr(0, column.size() - step_time.size() + 1));
  CHECK(kinds.size() >= 4);
  for (const std::string& column : columns) {
    const auto kind = std::ranges::find_if(
        kinds, [&](const std::string& prefix) { return column.starts_with(prefix); });
    if (kind == kinds.end())
      of_run.push_back(column);
    else
      of_steps.push_back(column.substr(kind->size()));
  }
  CHECK(unused("column", of_run).empty());
  CHECK(unused("stage", of_steps).empty());
  CHECK(unused("cluster", listed("descriptions", "Clusters")).empty());
  CHECK(unused("device", listed("descriptions", "Devices")).empty());
  CHECK(unused("model", listed("descriptions", "Models")).empty());
  CHECK(unused("sites", listed("descriptions", "Sites")).empty());
  // Unknown names have no meaning, so the checks above do test something.
  CHECK(unused("stage", {"no_such_column"}) == explained("stage"));
  CHECK(meaning_of("cluster", "no_such_key").empty());
}

TEST_CASE("reference: a key lists its words once") {
  const std::string keys = reference_text("keys");
  for (const WhatIfKey& key : what_if_table()) {
    if (key.words.empty() || key.words.size() == 2) continue;
    const std::size_t begin = keys.find("\n  " + std::string(key.name) + " ");
    REQUIRE(begin != std::string::npos);
    const std::string line = keys.substr(begin + 1, keys.find('\n', begin + 1) - begin - 1);
    INFO(line);
    for (const std::string& word : key.words) CHECK(line.find(word) != std::string::npos);
    const std::size_t first = line.find(key.words.front());
    CHECK(line.find(key.words.front() + ", " + key.words[1], first + 1) == std::string::npos);
  }
}

}  // namespace
}  // namespace lambcast
