#include "validate/measure/survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>

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

// Removes a flag with its value, a number above 0, from `flags`, and sets `number` to the value.
template <typename Number>
void take_number(std::vector<std::string>& flags, const std::string& name, const char* unit,
                 Number& number) {
  const auto text = take(flags, name);
  if (!text) return;
  const char* const end = text->data() + text->size();
  const auto [stopped, status] = std::from_chars(text->data(), end, number);
  if (status != std::errc{} || stopped != end || !(number > 0))
    fail_input({"", 0, name}, fmt::format("'{}' is not a positive number of {}", *text, unit));
}

// Returns the words of a list with commas between them.
std::vector<std::string> words_of(const std::string& text) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    words.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

namespace fs = std::filesystem;

struct Nodes {
  int count = 0;
  bool several_ranks = false;
  std::vector<int> of_rank;  // node of each rank, numbered by first appearance
};

Nodes nodes_of(const std::vector<RankPlace>& places) {
  std::map<std::string, int> known;
  Nodes nodes;
  for (const RankPlace& place : places) {
    const auto [node, is_new] = known.try_emplace(place.host, nodes.count);
    if (is_new) ++nodes.count;
    nodes.several_ranks = nodes.several_ranks || !is_new;
    nodes.of_rank.push_back(node->second);
  }
  return nodes;
}

struct PlannedTable {
  Operation operation;
  DataType type;
  int nodes, ranks;
  std::uint64_t block_bytes;     // unit of its sizes
  std::vector<bool> takes_part;  // for each rank of the launch

  std::string file() const { return survey_table_name(operation, type, nodes); }
};

std::vector<PlannedTable> planned_tables(const SurveyOptions& survey, const SurveyedRanks& of) {
  const Nodes nodes = nodes_of(of.places());
  std::vector<PlannedTable> tables;
  for (const int count : surveyed_node_counts(nodes.count, nodes.several_ranks)) {
    std::vector<bool> takes_part;
    for (const int node : nodes.of_rank) takes_part.push_back(node < count);
    const auto ranks = static_cast<int>(std::ranges::count(takes_part, true));
    if (ranks < 2) continue;
    for (const Operation operation : survey.operations)
      for (const DataType type : survey.types)
        if (const std::uint64_t block = of.block_bytes(operation, type, ranks))
          tables.push_back({operation, type, count, ranks, block, takes_part});
  }
  return tables;
}

// Writes a row for each table and size. A rename makes the complete file appear at once.
void write_plan(const SurveyOptions& survey, const MeasureOptions& options,
                const std::vector<PlannedTable>& tables) {
  fs::create_directories(fs::path(survey.folder) / "tables");
  const fs::path plan = fs::path(survey.folder) / "plan.csv", begun = plan.string() + ".tmp";
  {
    std::ofstream file(begun);
    file << "table,operation,nodes,ranks,size_bytes\n";
    for (const PlannedTable& table : tables)
      for (const std::uint64_t size : sizes_to_run(options, table.block_bytes))
        file << fmt::format("{},{},{},{},{}\n", table.file(), name_of(table.operation), table.nodes,
                            table.ranks, size);
    if (!file.flush()) throw Error(Exit::failure, plan.string() + ": cannot be written");
  }
  fs::rename(begun, plan);
}

}  // namespace

std::vector<int> surveyed_node_counts(int nodes, bool several_ranks_a_node) {
  std::vector<int> counts{nodes};
  if (nodes > 1 && several_ranks_a_node) counts.push_back(1);
  for (int count = 2; count < nodes; count *= 2) counts.push_back(count);
  return counts;
}

std::string survey_table_name(Operation operation, DataType type, int nodes) {
  return type == DataType::float32
             ? fmt::format("{}-n{}.csv", name_of(operation), nodes)
             : fmt::format("{}-{}-n{}.csv", name_of(operation), name_of(type), nodes);
}

std::vector<Operation> operations_in(const std::string& list, const std::string& flag) {
  std::vector<Operation> operations;
  for (const std::string& word : words_of(list))
    operations.push_back(parse_operation(word, {"", 0, flag}, Operation::stream));
  return operations;
}

std::vector<DataType> types_in(const std::string& list, const std::string& flag) {
  std::vector<DataType> types;
  for (const std::string& word : words_of(list)) types.push_back(parse_data_type(word, flag));
  return types;
}

std::optional<SurveyOptions> take_survey_flags(std::vector<std::string>& flags) {
  const std::optional<std::string> folder = take(flags, "--tables");
  if (!folder) return std::nullopt;
  SurveyOptions survey{*folder};
  if (const auto list = take(flags, "--op")) survey.operations = operations_in(*list, "--op");
  if (const auto list = take(flags, "-d")) survey.types = types_in(*list, "-d");
  survey.steered = take(flags, "--steered").has_value();
  take_number(flags, "--budget", "seconds", survey.budget_s);
  take_number(flags, "--steps-of", "weights", survey.step_weights);
  return survey;
}

int run_survey(const SurveyOptions& survey, const MeasureOptions& options, SurveyedRanks& ranks,
               std::istream& answers, std::ostream& news) {
  const auto begun = std::chrono::steady_clock::now();
  const std::vector<PlannedTable> tables = planned_tables(survey, ranks);
  if (tables.empty())
    throw Error(Exit::usage,
                ranks.places().size() < 2
                    ? "survey: one rank measures no collective; start it with mpirun or srun"
                    : "-d: MPI adds no 16-bit numbers (allowed: float, uint8, or an operation "
                      "without a sum)");
  // Returns whether all ranks go on: not if the budget is used up. If the survey is steered, prints
  // `what`, which is done, and reads an answer.
  const auto goes_on = [&](const std::string& what) {
    std::string answer = "go";
    if (ranks.first()) {
      if (survey.steered) {
        news << what << std::endl;
        std::getline(answers, answer);
      }
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
      if (took.count() >= survey.budget_s) answer = "stop";
    }
    return ranks.value_of_first(answer == "go");
  };
  if (ranks.first()) write_plan(survey, options, tables);
  int code = 0;
  std::string done = "plan";
  if (ranks.value_of_first(survey.step_weights > 0)) {
    if (!goes_on(done)) return code;
    std::ofstream file;
    if (ranks.first()) file.open(fs::path(survey.folder) / "steps.csv");
    ranks.measure_steps(options, survey.step_weights, file);
    done = "steps.csv";
  }
  for (const PlannedTable& table : tables) {
    if (!goes_on(done)) return code;
    MeasureOptions of_table = options;
    of_table.operation = table.operation;
    of_table.type = table.type;
    of_table.format = ReportFormat::csv;
    std::ofstream file;
    if (ranks.first()) file.open(fs::path(survey.folder) / "tables" / table.file());
    code |= ranks.measure(of_table, table.takes_part, file);
    done = table.file();
  }
  goes_on(done);
  return code;
}

}  // namespace lambcast::validate
