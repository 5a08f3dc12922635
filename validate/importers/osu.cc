#include <fmt/format.h>

#include <array>
#include <string>

#include "validate/importers/importers.h"
#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

// Known tests by the words of their title ("# OSU MPI-CUDA Allreduce Latency Test v5.8").
struct OsuTest {
  std::string_view title;
  Operation operation;
  bool size_per_rank;  // OSU prints a block; the total is n blocks
  bool bandwidth;      // MB/s (1e6 bytes) instead of us
};

constexpr std::array<OsuTest, 8> osu_tests{{
    {" Allreduce Latency Test", Operation::all_reduce, false, false},
    {" Allgather Latency Test", Operation::all_gather, true, false},
    {" All-to-All Personalized Exchange Latency Test", Operation::all_to_all, true, false},
    {" Broadcast Latency Test", Operation::broadcast, false, false},
    {" Reduce_scatter Latency Test", Operation::reduce_scatter, false, false},
    {" Reduce Latency Test", Operation::reduce, false, false},
    {" Latency Test", Operation::ping_pong, false, false},
    {" Bandwidth Test", Operation::stream, false, true},
}};

bool is_pair(Operation operation) {
  return operation == Operation::ping_pong || operation == Operation::stream;
}

class OsuReader {
 public:
  OsuReader(std::string_view name, const ImportHints& hints) : file_(name), hints_(hints) {}

  std::vector<Measurement> read(std::string_view text) {
    for (const std::string_view line : lines_of(text)) read_line(trimmed(line), ++line_);
    finish();
    if (found_.empty()) fail("holds no table of an OSU benchmark", 0);
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, int line) const {
    fail_input({file_, line, {}}, what);
  }

  void read_line(std::string_view line, int number) {
    if (starts_with(line, "# OSU ")) {
      finish();
      begin(line, number);
    } else if (starts_with(line, "# Size")) {
      // With -f the table also has the fastest and the slowest rank.
      has_spread_ = contains(line, "Min Latency") && contains(line, "Max Latency");
      in_table_ = test_ != nullptr;
    } else if (contains(line, "osu_") && !starts_with(line, "#")) {
      read_command(line);
    } else if (in_table_ && !starts_with(line, "#")) {
      read_row(line, number);
    }
  }

  void begin(std::string_view line, int number) {
    // The title starts at the blank after "MPI", "MPI-CUDA" or "NCCL".
    const std::size_t blank = line.find(' ', std::string_view("# OSU ").size());
    const std::string_view title = blank == std::string_view::npos ? "" : line.substr(blank);
    for (const OsuTest& test : osu_tests) {
      if (starts_with(title, test.title)) test_ = &test;
    }
    if (test_ == nullptr) {
      fail(fmt::format("'{}' is not modelled (known: allreduce, allgather, alltoall, bcast, "
                       "reduce, reduce_scatter, latency, bw)",
                       trimmed(line.substr(1))),
           number);
    }
    title_ = std::string(trimmed(line.substr(1)));
    start_line_ = number;
  }

  // Reads "mpirun ... -np 16 ... osu_allreduce", the only place with the number of ranks.
  void read_command(std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (contains(words[i], "osu_")) break;
      const bool counts = words[i] == "-n" || words[i] == "-np" || words[i] == "--ntasks";
      const auto value = as_integer(words[i + 1]);
      if (counts && value && *value > 0 && *value < 1'000'000) {
        command_ranks_ = static_cast<int>(*value);
      }
    }
  }

  void read_row(std::string_view line, int number) {
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty() || !as_integer(words[0])) {
      if (!rows_.empty()) in_table_ = false;  // other output follows the table
      return;
    }
    const auto size = as_integer(words[0]);
    const auto value = words.size() > 1 ? as_number(words[1]) : std::nullopt;
    if (*size < 0 || !value || *value <= 0) {
      fail(fmt::format("'{}' does not read 'size value'", line), number);
    }
    if (*size == 0) return;
    const double bytes = static_cast<double>(*size);
    Row row;
    row.size = Bytes(bytes);
    row.time = time(test_->bandwidth ? bytes / *value : *value, number);
    if (has_spread_) row.spread = read_spread(words, number);
    rows_.push_back(row);
  }

  Spread read_spread(const std::vector<std::string_view>& words, int number) const {
    const bool complete = words.size() >= 5;  // size, avg, min, max, ..., iterations
    const auto low = complete ? as_number(words[2]) : std::nullopt;
    const auto high = complete ? as_number(words[3]) : std::nullopt;
    if (!low || !high || *low > *high) fail("has no Min and Max Latency", number);
    return {time(*low, number), time(*high, number)};
  }

  Duration time(double us, int number) const { return time_of(us, file_, number); }

  void finish() {
    const OsuTest* const test = std::exchange(test_, nullptr);
    in_table_ = false;
    if (test == nullptr) return;
    if (rows_.empty()) fail("this table has no rows", start_line_);
    Measurement m;
    m.operation = test->operation;
    const std::optional<int> known = hints_.ranks ? hints_.ranks : command_ranks_;
    if (!known && !is_pair(m.operation)) {
      fail("OSU does not print the number of ranks: give it with --ranks", start_line_);
    }
    m.ranks = is_pair(m.operation) ? 2 : *known;
    if (hints_.operation && *hints_.operation != m.operation) {
      fail(fmt::format("is a table of {}, not of {}", name_of(m.operation),
                       name_of(*hints_.operation)),
           start_line_);
    }
    m.nodes = hints_.nodes;
    if (m.nodes && is_pair(m.operation)) m.nodes = std::min(*m.nodes, 2);
    if (m.nodes && m.ranks % *m.nodes == 0) m.gpus_per_node = m.ranks / *m.nodes;
    m.rows = std::move(rows_);
    rows_.clear();
    if (test->size_per_rank) {
      for (Row& row : m.rows) row.size = row.size * m.ranks;
    }
    m.backend = contains(title_, "OSU MPI") ? Backend::mpi_host : Backend::nccl;
    m.provenance = {Kind::measured, fmt::format("{}, {}", title_, file_)};
    found_.push_back(std::move(m));
  }

  std::string file_;
  ImportHints hints_;
  int line_ = 0;
  const OsuTest* test_ = nullptr;
  std::string title_;
  int start_line_ = 0;
  bool in_table_ = false;
  bool has_spread_ = false;
  std::optional<int> command_ranks_;
  std::vector<Row> rows_;
  std::vector<Measurement> found_;
};

}  // namespace

std::vector<Measurement> import_osu(std::string_view text, std::string_view name,
                                    const ImportHints& hints) {
  return OsuReader(name, hints).read(text);
}

}  // namespace lambcast::validate
