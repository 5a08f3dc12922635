#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "topologies/foreign_description.h"
#include "validate/importers/foreign_logs.h"
#include "validate/importers/importers.h"
#include "validate/importers/lines.h"
#include "validate/importers/nccl_names.h"
#include "validate/importers/rank_count.h"

namespace lambcast::validate {
namespace {

using Words = std::vector<std::string_view>;

bool is_word_character(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

// Returns the position of a header's '#': the first '#' that is not inside a word.
std::size_t header_start(std::string_view line) {
  std::size_t at = line.find('#');
  while (at != std::string_view::npos && at > 0 && is_word_character(line[at - 1])) {
    at = line.find('#', at + 1);
  }
  return at;
}

// Returns the text before "host:pid:tid [0] NCCL INFO ..." if NCCL wrote into the middle of a line.
std::string_view before_nccl_message(std::string_view line) {
  for (const std::string_view level : {"NCCL INFO", "NCCL WARN", "NCCL TRACE"}) {
    const std::size_t at = line.find(level);
    if (at == std::string_view::npos) continue;
    line = trimmed(line.substr(0, at));
    const std::size_t device = line.rfind('[');  // "host:pid:tid [0]"
    if (device != std::string_view::npos) line = trimmed(line.substr(0, device));
  }
  return line;
}

// The left half of a row: size, count, type and, if the version prints them, redop and root.
struct Preamble {
  double size = 0;
  std::string key;  // type, redop and root; a change starts another table
  int line = 0;
};

// Returns the words of a row from its size on: two whole numbers, then a type. Returns nothing if
// the line has no row. An unknown type is accepted if a reduction and four more words follow it.
Words row_in(const Words& words) {
  for (std::size_t i = 0; i + 2 < words.size(); ++i) {
    if (!as_integer(words[i]) || !as_integer(words[i + 1])) continue;
    const bool reduces = i + 7 < words.size() && is_reduction(words[i + 3]);
    if (is_data_type(words[i + 2]) || (reduces && !as_number(words[i + 2]))) {
      return {words.begin() + static_cast<std::ptrdiff_t>(i), words.end()};
    }
  }
  return {};
}

bool is_body_word(std::string_view word) { return word == "N/A" || as_number(word).has_value(); }

// Returns the numbers at the end of a line if they can be those of a row, else nothing.
Words body_in(const Words& words) {
  const auto last = std::find_if_not(words.rbegin(), words.rend(), is_body_word);
  Words body(last.base(), words.end());
  if (body.size() % 4 != 0) body.clear();
  return body;
}

// One run of an nccl-tests program: its header and the tables that follow.
struct Run {
  std::optional<Operation> operation;  // as stated in the header
  std::string program;                 // the text that names the program, and its place
  int program_line = 0;
  std::map<std::int64_t, std::string> hosts;  // by rank
  std::optional<int> logged_ranks;            // "nranks N" in a message of NCCL
  std::map<std::string, int> groups;          // ranks of each communicator
  std::string gpu;
  std::string settings;  // the line that begins with "nThread"
  Backend backend = Backend::nccl;
  std::optional<std::string> staging;  // from `lambcast measure`
  bool counts_wrong = true;            // "#wrong" counts elements; the old "error" is a deviation
  bool cpu_time = false;
  std::optional<bool> has_root;  // as stated by the line of column names
  struct Table {
    std::string key;
    std::vector<Row> rows;
    std::vector<PrintedBandwidth> printed;
  };
  std::vector<Table> tables;
};

class NcclTestsReader {
 public:
  NcclTestsReader(std::string_view name, const ImportHints& hints) : file_(name), hints_(hints) {}

  std::vector<Measurement> read(std::string_view text) {
    const std::string plain = without_colours(text);
    for (const std::string_view line : lines_of(plain)) read_line(line, ++line_);
    if (pending_) fail(pending_->line, "this row is cut off");
    finish_run();
    if (found_.empty()) refuse_foreign_description(plain, file_);
    if (found_.empty()) refuse_markdown(plain);
    if (found_.empty()) refuse_foreign_log(plain, file_, false);
    if (found_.empty())
      fail(0,
           "holds no row of an nccl-tests table, nor the header of another format that is read: "
           "OSU, "
           "IMB, iperf3 -J, perftest, ds_bench, CSV of lambcast measure");
    return std::move(found_);
  }

 private:
  [[noreturn]] void fail(int line, const std::string& what) const {
    fail_input({file_, line, {}}, what);
  }

  void read_line(std::string_view line, int number) {
    const std::string_view text = before_nccl_message(line);
    const bool cut = text.size() != line.size();
    if (cut) read_nccl_message(line);
    const std::size_t header = header_start(text);
    const bool runs = contains(text.substr(0, header), "_perf") && !contains(text, "Compiling ") &&
                      !contains(text, "Linking ");
    if (header != std::string_view::npos && !runs) {
      return read_header(trimmed(text.substr(header + 1)), number);
    }
    const Words words = words_of(text);
    const Words row = row_in(words);
    if (!row.empty()) return read_row(row, number, cut);
    const Words body = body_in(words);
    if (pending_ && !body.empty()) {
      const Preamble preamble = *std::exchange(pending_, std::nullopt);
      return read_body(preamble, body);
    }
    if (contains(text, "Test NCCL failure") || contains(text, "Test CUDA failure"))
      fail(number, "the test ended with a failure: measure again");
    if (runs) name_program(std::string(text), number);
  }

  // Reads "... comm 0x55d0 rank 2 nranks 4 ... - Init COMPLETE".
  void read_nccl_message(std::string_view message) {
    const Words words = words_of(message);
    const auto at = std::find(words.begin(), words.end(), "nranks");
    if (at == words.end() || at + 1 == words.end()) return;
    const auto ranks = as_integer(*(at + 1));
    if (ranks && *ranks > 0 && *ranks < 1'000'000) run_.logged_ranks = static_cast<int>(*ranks);
  }

  void read_header(std::string_view text, int line) {
    const Words words = words_of(text);
    if (words.empty()) return;
    constexpr std::string_view kStarting = "Collective test starting:";
    if (starts_with(text, kStarting)) {
      begin_run();
      const std::string_view test = trimmed(text.substr(kStarting.size()));
      if (contains(test, "_perf")) {
        name_program(std::string(test), line);
      } else {
        run_.operation = parse_operation(test, {file_, line, {}});
      }
    } else if (starts_with(words[0], "nThread")) {
      begin_run();
      check_aggregation(words, line);
      run_.settings = trimmed(text);
    } else if (starts_with(text, "Blocking Enabled")) {
      fail(line, blocking_collectives);
    } else if (starts_with(text, "Using devices")) {
      begin_run();
      run_.hosts.clear();
    } else if (starts_with(text, "lambcast measure, backend mpi,")) {
      begin_run();
      run_.backend = Backend::mpi_host;
    } else if (words[0] == "staging:") {
      run_.staging = trimmed(text.substr(words[0].size()));
    } else if (words[0] == "Rank") {
      read_device(words, line);
    } else if (words[0] == "size" && words.size() > 3) {
      run_.counts_wrong = std::find(words.begin(), words.end(), "error") == words.end();
      run_.has_root = std::find(words.begin(), words.end(), "root") != words.end();
      run_.cpu_time = std::find(words.begin(), words.end(), "cputime") != words.end();
    } else if (starts_with(text, "Out of bounds values") && contains(text, "FAILED")) {
      fail(line, "the test reports wrong results");
    }
  }

  // Rejects a Markdown table: "| 1048576 | 35.4 | 29.6 | 55.5 |".
  void refuse_markdown(std::string_view text) const {
    int line = 0;
    for (const std::string_view row : lines_of(text)) {
      std::string cells(trimmed(row));
      ++line;
      if (!starts_with(cells, "|")) continue;
      std::ranges::replace(cells, '|', ' ');
      const Words words = words_of(cells);
      const auto begins_with_digit = [](std::string_view word) {
        return word.front() >= '0' && word.front() <= '9';
      };
      if (words.size() > 2 && begins_with_digit(words[0]) && begins_with_digit(words[1]))
        fail(line, "is a table in Markdown, which drops columns: give what nccl-tests printed");
    }
  }

  // Checks "nThread 1 ... agg iters: 16 ... graph: 0 ...".
  void check_aggregation(const Words& words, int line) const {
    const auto graph = std::find(words.begin(), words.end(), "graph:");
    if (words.end() - graph > 1 && as_integer(*(graph + 1)).value_or(0) > 0)
      fail(line, captured_collectives);
    const auto warm_up = std::find(words.begin(), words.end(), "warmup");
    if (words.end() - warm_up > 2 && as_integer(*(warm_up + 2)).value_or(1) == 0)
      fail(line, first_collectives);
    const auto at = std::find(words.begin(), words.end(), "agg");
    if (words.end() - at < 3) return;
    if (const auto each = as_integer(*(at + 2)); each && *each > 1)
      fail(line, operations_in_groups(*each));
  }

  // Reads "Rank  0 Group  0 Pid  123 on  host device  0 [0000:19:00] NVIDIA H100".
  void read_device(const Words& words, int line) {
    const auto rank = words.size() > 1 ? as_integer(words[1]) : std::nullopt;
    const auto on = std::find(words.begin(), words.end(), "on");
    const auto device = std::find(on, words.end(), "device");
    if (!rank || *rank < 0 || *rank > 1'000'000 || on == words.end() || device - on != 2) {
      fail(line, "this device line does not read 'Rank N ... on HOST device D ...'");
    }
    const auto group = std::find(words.begin(), words.end(), "Group");
    if (group != words.end() && group + 1 != words.end()) ++run_.groups[std::string(*(group + 1))];
    if (group != words.end() && group + 1 != words.end() && *(group + 1) != "0") return;
    run_.hosts[*rank] = std::string(*(on + 1));
    const auto bus =
        std::find_if(device, words.end(), [](std::string_view word) { return word.back() == ']'; });
    if (bus != words.end() && run_.gpu.empty()) {
      run_.gpu = fmt::format("{}", fmt::join(bus + 1, words.end(), " "));
    }
  }

  void name_program(std::string text, int line) {
    if (!run_.tables.empty()) begin_run();
    run_.program = std::move(text);
    run_.program_line = line;
  }

  // Reads the columns between the type and the numbers: "sum -1", "sum", "-1" or nothing. Without a
  // line of column names, there is a root if a multiple of four numbers remains after it. `cut`:
  // NCCL wrote into the row, so text joined to the root or after it is not part of the row.
  void read_row(Words words, int line, bool cut) {
    if (pending_) fail(pending_->line, "this row is cut off");
    Preamble preamble;
    preamble.size = static_cast<double>(*as_integer(words[0]));
    preamble.line = line;
    if (preamble.size < 0) fail(line, "the size is negative");
    if (!is_data_type(words[2])) fail(line, fmt::format("'{}' is not a known data type", words[2]));
    std::size_t next = 3;
    preamble.key = std::string(words[2]);
    const auto take = [&] { preamble.key.append(" ").append(words[next++]); };
    if (next < words.size() && is_reduction(words[next])) take();
    if (cut) {
      if (next < words.size()) take_glued_root(words[next], preamble);
      pending_ = preamble;
      return;
    }
    drop_timestamp(words);
    const bool has_root = run_.has_root.value_or((words.size() - next) % 4 == 1);
    if (has_root && next < words.size() && as_integer(words[next])) take();
    words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(next));
    if (words.empty()) {
      pending_ = preamble;
    } else {
      read_body(preamble, words);
    }
  }

  // Reads the root from "-1node7:123:456", in which text of NCCL follows it.
  static void take_glued_root(std::string_view word, Preamble& preamble) {
    int root = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), root);
    if (status == std::errc{}) preamble.key += fmt::format(" {}", root);
  }

  static void drop_timestamp(Words& words) {
    if (words.size() < 2) return;
    const std::string_view date = words[words.size() - 2];
    if (date.size() == 10 && date[4] == '-' && date[7] == '-') words.resize(words.size() - 2);
  }

  // Reads time algbw busbw #wrong [i_min i_max i_p99 i_cv%], out of place, then again in place.
  void read_body(const Preamble& preamble, const Words& body) {
    const int line = preamble.line;
    const std::size_t half = body.size() == 16 ? 8 : 4;
    if (body.size() < 4) fail(line, "this row is cut off");
    const auto odd = std::find_if_not(body.begin(), body.end(), is_body_word);
    if (body.size() != 4 && body.size() != 8 && body.size() != 16 && odd != body.end()) {
      fail(line, fmt::format("'{}' is neither a reduction known nor a number", *odd));
    }
    if (body.size() != 4 && body.size() != 8 && body.size() != 16) {
      fail(line, fmt::format("has {} numbers after the type, reduction and root where nccl-tests "
                             "prints 4, 8 or 16",
                             body.size()));
    }
    if (hints_.in_place && body.size() == 4) fail(line, "has no in-place columns");
    const Words part(body.begin() + static_cast<std::ptrdiff_t>(hints_.in_place ? half : 0),
                     body.begin() + static_cast<std::ptrdiff_t>(hints_.in_place ? 2 * half : half));
    if (run_.cpu_time) fail(line, "reports CPU time (-C 1), not the time of the collective");
    if (preamble.size == 0) return;
    const double us = number(part[0], "time", line);
    if (us <= 0) fail(line, fmt::format("the time is {}", part[0]));
    const PrintedBandwidth printed{number(part[1], "algbw", line), number(part[2], "busbw", line),
                                   std::max(rounding_of(part[1]), rounding_of(part[2])), line};
    check_algbw(preamble.size, part[0], part[1], {file_, line, {}});
    if (part[3] != "N/A" && run_.counts_wrong && number(part[3], "#wrong", line) > 0) {
      fail(line, fmt::format("{} elements of the result are wrong", part[3]));
    }
    Row row{Bytes(preamble.size), time(us, line), {}};
    if (half == 8) {
      row.spread = Spread{time(number(part[4], "i_min", line), line),
                          time(number(part[5], "i_max", line), line)};
      if (row.spread->low > row.spread->high) fail(line, "i_min is above i_max");
    }
    table_for(preamble).rows.push_back(row);
    run_.tables.back().printed.push_back(printed);
  }

  Duration time(double us, int line) const { return time_of(us, file_, line); }

  double number(std::string_view word, std::string_view column, int line) const {
    const std::optional<double> value = as_number(word);
    if (!value) fail(line, fmt::format("{} is '{}', which is not a finite number", column, word));
    return *value;
  }

  // Returns the table of a row. Sizes grow within a table; -d all, -o all and repeated cycles start
  // another one.
  Run::Table& table_for(const Preamble& preamble) {
    const bool goes_on = !run_.tables.empty() && run_.tables.back().key == preamble.key &&
                         run_.tables.back().rows.back().size.value() < preamble.size;
    if (!goes_on) run_.tables.push_back({preamble.key, {}, {}});
    return run_.tables.back();
  }

  void begin_run() {
    if (pending_) fail(pending_->line, "this row is cut off");
    if (run_.tables.empty()) return;
    finish_run();
    run_ = {};
  }

  void finish_run() {
    for (const Run::Table& table : run_.tables) found_.push_back(to_measurement(table));
  }

  Operation operation_of(const Run::Table& table) const {
    if (hints_.operation) return *hints_.operation;
    if (run_.operation) return *run_.operation;
    const Where program{file_, run_.program_line, {}};
    if (const auto named = operation_of_program(run_.program, program)) return *named;
    if (const auto named = operation_of_file(file_)) return *named;
    fail(table.printed.front().line, "the file does not name its collective: give it with --op");
  }

  int ranks_of(const Run::Table& table, Operation operation) const {
    if (hints_.ranks) return *hints_.ranks;
    if (!run_.hosts.empty()) return static_cast<int>(run_.hosts.rbegin()->first) + 1;
    if (run_.logged_ranks) return *run_.logged_ranks;
    if (const auto ranks = ranks_from_ratio(operation, table.printed)) return *ranks;
    fail(table.printed.front().line,
         "the file does not state the number of ranks: give it with --ranks");
  }

  Measurement to_measurement(const Run::Table& table) const {
    Measurement m;
    m.operation = operation_of(table);
    if (run_.groups.size() > 1)
      fail(table.printed.front().line,
           communicators_at_once(run_.groups.size(), run_.groups.begin()->second));
    m.ranks = ranks_of(table, m.operation);
    check_ratio(m.operation, m.ranks, table.printed, file_);
    std::map<std::string, int> ranks_of_host;
    for (const auto& [rank, host] : run_.hosts) ++ranks_of_host[host];
    if (run_.hosts.size() == static_cast<std::size_t>(m.ranks)) {
      check_even_hosts(ranks_of_host, {file_, table.printed.front().line, {}});
      m.nodes = static_cast<int>(ranks_of_host.size());
    }
    if (hints_.nodes) m.nodes = hints_.nodes;
    if (m.nodes && m.ranks % *m.nodes == 0) m.gpus_per_node = m.ranks / *m.nodes;
    m.rows = table.rows;
    m.provenance = {Kind::measured, fmt::format("nccl-tests log {}", file_)};
    m.backend = run_.backend;
    m.staging = run_.staging;
    if (!run_.gpu.empty()) m.notes.emplace_back("gpu", run_.gpu);
    m.notes.emplace_back("data", table.key);
    m.notes.emplace_back("inplace", hints_.in_place ? "in-place columns" : "out-of-place columns");
    if (!run_.settings.empty()) m.notes.emplace_back("options", run_.settings);
    return m;
  }

  std::string file_;
  ImportHints hints_;
  int line_ = 0;
  Run run_;
  std::optional<Preamble> pending_;  // row whose numbers follow on a later line
  std::vector<Measurement> found_;
};

}  // namespace

std::vector<Measurement> import_nccl_tests_text(std::string_view text, std::string_view name,
                                                const ImportHints& hints) {
  return NcclTestsReader(name, hints).read(text);
}

}  // namespace lambcast::validate
