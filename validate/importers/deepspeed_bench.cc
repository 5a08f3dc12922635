#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "validate/importers/importers.h"
#include "validate/importers/lines.h"
#include "validate/importers/rank_count.h"

namespace lambcast::validate {
namespace {

// Benchmarks, under their current names and those of the first releases.
struct BenchTest {
  std::string_view name;
  Operation operation;
  bool size_per_rank;  // whether the printed size is one rank's input; the total is n times it
  double counted;      // factor by which the printed throughput counts the total
};

constexpr std::array<BenchTest, 7> bench_tests{{
    {"all_reduce", Operation::all_reduce, false, 2},
    {"allreduce", Operation::all_reduce, false, 2},
    {"all_gather", Operation::all_gather, true, 1},
    {"allgather", Operation::all_gather, true, 1},
    {"all_to_all", Operation::all_to_all, false, 1},
    {"alltoall", Operation::all_to_all, false, 1},
    {"broadcast", Operation::broadcast, false, 1},
}};

// Returns the number after a word: 8 of "on 8 devices", 2 of "nnodes=2,".
std::optional<int> number_behind(std::string_view line, std::string_view word) {
  const std::size_t at = line.find(word);
  if (at == std::string_view::npos) return {};
  line.remove_prefix(at + word.size());
  const auto number = as_integer(line.substr(0, line.find_first_not_of("0123456789")));
  if (!number || *number < 1 || *number > 1'000'000) return {};
  return static_cast<int>(*number);
}

// Returns the bytes of "8501054668x4" (elements and bytes per element); nothing for any other word.
std::optional<double> bytes_of(std::string_view description) {
  const std::size_t by = description.find('x');
  if (by == std::string_view::npos) return {};
  const auto elements = as_integer(description.substr(0, by));
  const auto width = as_integer(description.substr(by + 1));
  if (!elements || !width || *elements < 1 || *width < 1 || *width > 16) return {};
  return static_cast<double>(*elements) * static_cast<double>(*width);
}

class BenchReader {
 public:
  BenchReader(std::string_view name, const ImportHints& hints) : file_(name), hints_(hints) {}

  std::vector<Measurement> read(std::string_view text) {
    for (const std::string_view line : lines_of(text)) read_line(line, ++line_);
    finish();
    if (found_.empty())
      fail("holds no table of all_reduce, all_gather, all_to_all or broadcast", 0);
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, int line) const {
    fail_input({file_, line, {}}, what);
  }

  void read_line(std::string_view line, int number) {
    if (const auto nodes = number_behind(line, "nnodes=")) nodes_ = nodes;
    if (contains(line, "---- Performance of ")) {
      finish();
      begin(line, number);
    } else if (test_ != nullptr && contains(line, "Size (Bytes)")) {
      raw_ = contains(line, "Duration (us)");
      unit_ = contains(line, "BusBW (GBps)") ? 1 : 1.0 / 8;  // otherwise Gbps
      in_table_ = true;
    } else if (in_table_) {
      read_row(words_of(line), number);
    }
  }

  void begin(std::string_view line, int number) {
    const std::string_view title = line.substr(line.find("Performance of "));
    for (const BenchTest& test : bench_tests)
      if (words_of(title).size() > 2 && words_of(title)[2] == test.name) test_ = &test;
    if (test_ == nullptr) return;
    const auto devices = number_behind(title, " on ");
    if (!devices || *devices < 2) fail("states no number of devices of two or more", number);
    ranks_ = *devices;
    start_line_ = number;
  }

  // Launchers write names before a row and messages between rows, so a row is found by its
  // description.
  void read_row(const std::vector<std::string_view>& words, int number) {
    std::size_t at = 0;
    while (at < words.size() && !bytes_of(words[at])) ++at;
    if (at == words.size()) return;
    const std::size_t rates = at + (raw_ ? 2 : 3);
    const auto refuse = [&] {
      fail("does not read 'size description duration throughput busbw'", number);
    };
    if (words.size() < rates + 2) refuse();
    if (!raw_ && words[at + 2] != "us" && words[at + 2] != "ms") refuse();
    const double scale = raw_ || words[at + 2] == "us" ? 1 : 1000;
    const double time = as_number(words[at + 1]).value_or(0);
    const double rate = as_number(words[rates]).value_or(-1);
    const double bus = as_number(words[rates + 1]).value_or(-1);
    if (time <= 0 || rate < 0 || bus < 0) refuse();
    const double size = *bytes_of(words[at]) * (test_->size_per_rank ? ranks_ : 1);
    const double us = time * scale, GBps = unit_ / test_->counted;
    const double printed_to =
        std::max(rounding_of(words[rates]), rounding_of(words[rates + 1])) * unit_;
    const double of_time = rounding_of(words[at + 1]) / time;
    const double expected = size / us * 1e-3;
    if (std::abs(rate * GBps - expected) > printed_to + (of_time + 0.005) * expected)
      fail(fmt::format("a throughput of {} is not that of {} bytes in {} us", words[rates], size,
                       us),
           number);
    printed_.push_back({rate * GBps, bus * unit_, printed_to + of_time * expected, number});
    Row& row = rows_.emplace_back();
    row.size = Bytes(size);
    row.time = time_of(us, file_, number);
  }

  void finish() {
    const BenchTest* const test = std::exchange(test_, nullptr);
    std::vector<Row> rows = std::exchange(rows_, {});
    const std::vector<PrintedBandwidth> printed = std::exchange(printed_, {});
    in_table_ = false;
    if (test == nullptr) return;
    if (rows.empty()) fail("this table has no rows", start_line_);
    if (hints_.ranks && *hints_.ranks != ranks_)
      fail(fmt::format("is a table of {} devices, not of {}", ranks_, *hints_.ranks), start_line_);
    if (hints_.operation && *hints_.operation != test->operation)
      fail(fmt::format("is a table of {}, not of {}", name_of(test->operation),
                       name_of(*hints_.operation)),
           start_line_);
    check_ratio(test->operation, ranks_, printed, file_);
    Measurement m;
    m.operation = test->operation;
    m.ranks = ranks_;
    m.nodes = hints_.nodes ? hints_.nodes : nodes_;
    if (m.nodes && m.ranks % *m.nodes == 0) m.gpus_per_node = m.ranks / *m.nodes;
    m.rows = std::move(rows);
    m.backend = Backend::nccl;
    m.provenance = {Kind::measured,
                    fmt::format("DeepSpeed communication benchmark {}, {}", test->name, file_)};
    found_.push_back(std::move(m));
  }

  std::string file_;
  ImportHints hints_;
  int line_ = 0;
  const BenchTest* test_ = nullptr;
  int ranks_ = 0;
  std::optional<int> nodes_;
  int start_line_ = 0;
  bool in_table_ = false, raw_ = false;
  double unit_ = 1;  // factor from printed bandwidths to GB/s
  std::vector<Row> rows_;
  std::vector<PrintedBandwidth> printed_;
  std::vector<Measurement> found_;
};

}  // namespace

std::vector<Measurement> import_deepspeed_bench(std::string_view text, std::string_view name,
                                                const ImportHints& hints) {
  return BenchReader(name, hints).read(text);
}

}  // namespace lambcast::validate
