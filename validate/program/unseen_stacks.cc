#include "validate/program/unseen_stacks.h"

#include <algorithm>
#include <cmath>

#include "embedded/unseen_stack_files.h"
#include "validate/replay/user_runs.h"

namespace lambcast {
namespace {

constexpr double most_exposed = 0.5;

// Columns that do not affect the forecast.
constexpr const char* told[] = {"program", "source", "note", "unstated", "speedup_of"};

csv::Table without_told(csv::Table table) {
  for (const char* column : told) {
    const auto at = std::find(table.header.begin(), table.header.end(), column);
    const auto index = at - table.header.begin();
    table.header.erase(at);
    for (auto& row : table.rows) row.erase(row.begin() + index);
  }
  return table;
}

}  // namespace

std::string machine_of(const WhatIf& what_if) {
  std::string machine;
  for (const char* key : {"cluster", "device", "precision"})
    if (const auto said = what_if.find(key); said != what_if.end())
      machine += (machine.empty() ? "" : " ") + said->second;
  return machine;
}

bool mostly_computes(const SourceResult& result) {
  const WhatIf& said = result.of.what_if;
  return result.exposed < most_exposed && !said.contains("exchange") &&
         !said.contains("quantized_gradients");
}

double half_width_of(const SourceResult& result) {
  return std::log(*result.high / *result.low) / 2;
}

std::vector<UnseenStack> unseen_stacks() {
  const csv::Table table = parse_rows(unseen_stack_files().front().text, "unseen_stacks.csv");
  std::vector<UnseenStack> stacks;
  for (SourceFigure& figure : figures_of_runs(without_told(table))) {
    const auto row = static_cast<std::size_t>(figure.row) - 1;
    const std::string &program = table.text(row, "program"), &plain = table.text(row, "speedup_of");
    const std::string machine = machine_of(figure.what_if);
    auto stack = std::find_if(stacks.begin(), stacks.end(), [&](const UnseenStack& of) {
      return of.program == program && of.machine == machine;
    });
    if (stack == stacks.end())
      stack = stacks.insert(stack, {program, machine, figure.what_if.at("framework"), {}});
    if (!plain.empty()) stack->plain_runs.emplace_back(figure.name, plain);
    const bool stated = table.text(row, "unstated").empty();
    (stated ? stack->rows : stack->unstated_rows).push_back(std::move(figure));
  }
  return stacks;
}

}  // namespace lambcast
