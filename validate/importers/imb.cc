#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "validate/importers/importers.h"
#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

// Known benchmarks by their names ("# Benchmarking Allreduce").
struct ImbTest {
  std::string_view name;
  Operation operation;
  bool size_per_rank;  // whether a block is printed; the total is n blocks
};

constexpr std::array<ImbTest, 8> imb_tests{{
    {"Allreduce", Operation::all_reduce, false},
    {"Allgather", Operation::all_gather, true},
    {"Alltoall", Operation::all_to_all, true},
    {"Bcast", Operation::broadcast, false},
    {"Reduce", Operation::reduce, false},
    {"Reduce_scatter", Operation::reduce_scatter, false},
    {"Sendrecv", Operation::send_recv, false},
    {"PingPong", Operation::ping_pong, false},
}};

class ImbReader {
 public:
  ImbReader(std::string_view name, const ImportHints& hints) : file_(name), hints_(hints) {}

  std::vector<Measurement> read(std::string_view text) {
    for (const std::string_view line : lines_of(text)) read_line(trimmed(line), ++line_);
    finish();
    if (found_.empty())
      fail(
          "holds no table of two or more processes of Allreduce, Allgather, Alltoall, Bcast, "
          "Reduce, Reduce_scatter, Sendrecv or PingPong",
          0);
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, int line) const {
    fail_input({file_, line, {}}, what);
  }

  void read_line(std::string_view line, int number) {
    const auto words = words_of(line);
    if (starts_with(line, "# Benchmarking ")) {
      finish();
      for (const ImbTest& test : imb_tests)
        if (words.size() == 3 && words[2] == test.name) test_ = &test;
      start_line_ = number;
    } else if (starts_with(line, "# #processes = ")) {
      const auto count = as_integer(words[3]);
      if (!count || *count < 1 || *count > 1'000'000) fail("the processes are no number", number);
      processes_ = static_cast<int>(*count);
    } else if (starts_with(line, "#bytes")) {
      read_columns(words, number);
    } else if (in_table_) {
      read_row(words, number);
    }
  }

  // Reads the line "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]", or "t[usec]" for two
  // processes.
  void read_columns(const std::vector<std::string_view>& words, int number) {
    if (test_ == nullptr) return;
    if (words.size() < 3 || words[1] != "#repetitions") fail("columns are not known", number);
    has_spread_ = words.size() >= 5 && words[2] == "t_min[usec]" && words[3] == "t_max[usec]" &&
                  words[4] == "t_avg[usec]";
    if (!has_spread_ && words[2] != "t[usec]") fail("has neither t_avg nor t", number);
    in_table_ = true;
  }

  // A line that is not a row, such as a blank one, ends the table.
  void read_row(const std::vector<std::string_view>& words, int number) {
    if (words.empty() || !as_integer(words[0])) {
      in_table_ = false;
      return;
    }
    std::vector<double> numbers;
    for (const std::string_view word : words) numbers.push_back(as_number(word).value_or(-1));
    const std::size_t time = has_spread_ ? 4 : 2;
    if (words.size() <= time || *std::min_element(numbers.begin(), numbers.end()) < 0)
      fail("does not read 'bytes repetitions time ...'", number);
    if (numbers[0] == 0) return;
    Row row;
    row.size = Bytes(numbers[0]);
    row.time = time_of(numbers[time], file_, number);
    if (has_spread_) {
      if (numbers[2] > numbers[3]) fail("t_min is above t_max", number);
      row.spread = {time_of(numbers[2], file_, number), time_of(numbers[3], file_, number)};
    }
    rows_.push_back(row);
  }

  void finish() {
    const ImbTest* const test = std::exchange(test_, nullptr);
    const int processes = std::exchange(processes_, 0);
    std::vector<Row> rows = std::exchange(rows_, {});
    in_table_ = false;
    if (test == nullptr || processes == 1) return;
    if (processes == 0) fail("this table states no #processes", start_line_);
    if (rows.empty()) fail("this table has no rows", start_line_);
    if (hints_.ranks && *hints_.ranks != processes)
      fail(fmt::format("is a table of {} processes, not of {}", processes, *hints_.ranks),
           start_line_);
    if (hints_.operation && *hints_.operation != test->operation)
      fail(fmt::format("is a table of {}, not of {}", name_of(test->operation),
                       name_of(*hints_.operation)),
           start_line_);
    Measurement m;
    m.operation = test->operation;
    m.ranks = processes;
    m.nodes = hints_.nodes;
    if (m.nodes && m.ranks % *m.nodes == 0) m.gpus_per_node = m.ranks / *m.nodes;
    m.rows = std::move(rows);
    if (test->size_per_rank)
      for (Row& row : m.rows) row.size = row.size * m.ranks;
    m.backend = Backend::mpi_host;
    m.provenance = {Kind::measured, fmt::format("Intel MPI Benchmarks {}, {}", test->name, file_)};
    found_.push_back(std::move(m));
  }

  std::string file_;
  ImportHints hints_;
  int line_ = 0;
  const ImbTest* test_ = nullptr;
  int processes_ = 0;
  int start_line_ = 0;
  bool in_table_ = false, has_spread_ = false;
  std::vector<Row> rows_;
  std::vector<Measurement> found_;
};

}  // namespace

std::vector<Measurement> import_imb(std::string_view text, std::string_view name,
                                    const ImportHints& hints) {
  return ImbReader(name, hints).read(text);
}

}  // namespace lambcast::validate
