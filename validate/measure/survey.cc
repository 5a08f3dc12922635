#include "validate/measure/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace lambcast::validate {
namespace {

// Removes a flag with its value from `flags`; returns the value.
std::optional<std::string> take(std::vector<std::string>& flags, const std::string& name) {
  const auto flag = std::ranges::find(flags, name);
  if (flag == flags.end()) return std::nullopt;
  if (flag + 1 == flags.end()) fail_input({"", 0, name}, "has no value");
  const std::string value = *(flag + 1);
  flags.erase(flag, flag + 2);
  return value;
}

std::vector<Operation> parse_operations(const std::string& text) {
  std::vector<Operation> operations;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    operations.push_back(
        parse_operation(text.substr(at, end - at), {"", 0, "--ops"}, Operation::stream));
    at = end + 1;
  }
  return operations;
}

}  // namespace

std::vector<int> surveyed_node_counts(int nodes, bool several_ranks_a_node) {
  std::vector<int> counts;
  if (nodes == 1 || several_ranks_a_node) counts.push_back(1);
  for (int count = 2; count < nodes; count *= 2) counts.push_back(count);
  if (nodes > 1) counts.push_back(nodes);
  return counts;
}

std::string survey_table_name(Operation operation, int nodes) {
  return fmt::format("{}-n{}.csv", name_of(operation), nodes);
}

std::optional<SurveyOptions> take_survey_flags(std::vector<std::string>& flags) {
  const std::optional<std::string> folder = take(flags, "--survey");
  if (!folder) return std::nullopt;
  SurveyOptions survey{*folder, {Operation::all_reduce}};
  if (const auto operations = take(flags, "--ops"))
    survey.operations = parse_operations(*operations);
  if (const auto budget = take(flags, "--budget")) {
    const char* const end = budget->data() + budget->size();
    const auto [stopped, status] = std::from_chars(budget->data(), end, survey.budget_s);
    if (status != std::errc{} || stopped != end || !(survey.budget_s > 0))
      fail_input({"", 0, "--budget"}, fmt::format("'{}' is no number of seconds", *budget));
  }
  return survey;
}

}  // namespace lambcast::validate
