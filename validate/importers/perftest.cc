#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "validate/importers/importers.h"
#include "validate/importers/lines.h"

namespace lambcast::validate {
namespace {

// Columns, as given by the line above the numbers.
struct Columns {
  std::size_t value = 0;  // "BW average" or "t_typical"
  double bytes_per_s = 0;
  bool latency = false;
};

// The ends of a connection: " local address: LID 0x06 QPN ...", " GID: ...", then the remote ones.
// In a subnet no two ports have the same LID or GID.
class ConnectionEnds {
 public:
  // Reads the words of a line; returns whether the remote end is the local one.
  bool meet(const std::vector<std::string_view>& words) {
    const bool address = words.size() > 3 && words[1] == "address:";
    if (address) at_local_ = words[0] == "local";
    if (address && words[3].find_first_not_of("0x") != std::string_view::npos)
      return same(lid_, words[3]);
    return words.size() == 2 && words[0] == "GID:" && same(gid_, words[1]);
  }

 private:
  bool same(std::string& local, std::string_view word) const {
    if (at_local_) local = std::string(word);
    return !at_local_ && word == local;
  }

  std::string lid_, gid_;  // of the local end
  bool at_local_ = true;
};

class PerftestReader {
 public:
  explicit PerftestReader(std::string_view name) : file_(name) {}

  Measurement read(std::string_view text) {
    for (const std::string_view line : lines_of(text)) read_line(trimmed(line), ++line_);
    if (rows_.empty()) fail("holds no row of a perftest table", 0);
    Measurement m;
    m.operation = columns_->latency ? Operation::ping_pong : Operation::stream;
    m.ranks = 2;
    m.nodes = 2;
    m.streams = queue_pairs_;
    m.rows = std::move(rows_);
    m.provenance = {Kind::measured, fmt::format("perftest {} {}", title_, file_)};
    for (const std::string& setting : settings_) m.notes.emplace_back("perftest", setting);
    return m;
  }

 private:
  [[noreturn]] void fail(const std::string& what, int line) const {
    fail_input({file_, line, {}}, what);
  }

  void read_line(std::string_view line, int number) {
    if (contains(line, "Bidirectional BW Test")) {
      fail("a bidirectional test does not give the rate of one direction", number);
    }
    const auto heading = words_of(line);
    if (starts_with(line, "Dual-port") && heading.size() > 2 && heading[2] == "ON")
      fail("measures both ports of a NIC at once (-O); try: one port", number);
    if (const auto at = std::ranges::find(heading, "Device"); heading.end() - at > 2)
      check_device(std::string(*(at + 2)), number);
    if (contains(line, "BW Test") || contains(line, "Latency Test")) title_ = std::string(line);
    if (ends_.meet(words_of(line)))
      fail("both ends are one port: the test did not leave this host", number);
    // Copies in documents and wikis often lack the '#'.
    if (starts_with(line, "#bytes") || starts_with(line, "bytes "))
      return read_columns(line, number);
    for (const std::string_view key : {"Number of qps", "Mtu", "Link type"}) {
      if (starts_with(line, key)) keep_setting(line);
    }
    const auto words = words_of(line);
    if (columns_ && !words.empty() && as_integer(words[0])) read_row(words, number);
  }

  // Checks a device line such as "Dual-port       : OFF          Device         : mlx5_0".
  void check_device(const std::string& device, int number) {
    if (device_.empty()) device_ = device;
    if (device != device_)
      fail(fmt::format("results of several NICs, {} and {}: give each file by itself", device_,
                       device),
           number);
  }

  // Stores a setting such as "Number of qps   : 1            Transport type : IB".
  void keep_setting(std::string_view line) {
    const auto words = words_of(line);
    if (starts_with(line, "Number of qps") && words.size() > 4) {
      const auto number = as_integer(words[4]);
      if (number && *number > 0 && *number <= 65536) queue_pairs_ = static_cast<int>(*number);
    }
    const std::string text = fmt::format("{}", fmt::join(words, " "));
    if (std::find(settings_.begin(), settings_.end(), text) == settings_.end()) {
      settings_.push_back(text);
    }
  }

  void read_columns(std::string_view line, int number) {
    if (!rows_.empty())
      fail("a second table, which another NIC or host may have measured: give each file by itself",
           number);
    Columns columns;
    if (contains(line, "#sl")) fail("tables with a service level column are not known", number);
    if (contains(line, "BW average[Gb/sec]")) {
      columns = {3, 1e9 / 8, false};
    } else if (contains(line, "BW average[MB/sec]") || contains(line, "BW average[MiB/sec]")) {
      columns = {3, 1024.0 * 1024, false};  // both names mean 2^20
    } else if (contains(line, "t_min[usec]") && contains(line, "t_typical[usec]")) {
      columns = {4, 0, true};
    } else {
      fail("has neither BW average nor t_typical", number);
    }
    columns_ = columns;
  }

  void read_row(const std::vector<std::string_view>& words, int number) {
    const double size = as_number(words[0]).value_or(0);
    if (size <= 0 || words.size() < 5 || !as_integer(words[1])) {
      fail("does not read 'bytes iterations ...' in the columns of the header", number);
    }
    const double value = as_number(words[columns_->value]).value_or(0);
    if (value <= 0) fail(fmt::format("the result is '{}'", words[columns_->value]), number);
    Row row;
    row.size = Bytes(size);
    if (columns_->latency) {
      row.time = time(value, number);
      row.spread = read_spread(words, number);
    } else {
      const double rate = value * columns_->bytes_per_s;
      check_message_rate(size, rate, words[4], number);
      row.time = time(size / rate * 1e6, number);
    }
    rows_.push_back(row);
  }

  Duration time(double us, int number) const { return time_of(us, file_, number); }

  Spread read_spread(const std::vector<std::string_view>& words, int number) const {
    const auto low = as_number(words[2]);
    const auto high = as_number(words[3]);
    if (!low || !high || *low > *high) fail("t_min and t_max are no range", number);
    return {time(*low, number), time(*high, number)};
  }

  // Checks that MsgRate (millions of messages per second) times the size is the bandwidth.
  void check_message_rate(double bytes, double bytes_per_s, std::string_view word,
                          int number) const {
    const auto rate = as_number(word);
    if (!rate) fail(fmt::format("MsgRate is '{}'", word), number);
    const double expected = bytes * *rate * 1e6;
    const double tolerance = bytes * rounding_of(word) * 1e6 + 0.02 * bytes_per_s;
    // Small messages need a wider tolerance, since the bandwidth has only two printed decimals.
    const double coarse = 0.005 * columns_->bytes_per_s;
    if (std::abs(expected - bytes_per_s) > tolerance + coarse) {
      fail("MsgRate times the size is not BW average: the columns do not line up", number);
    }
  }

  std::string file_;
  int line_ = 0;
  std::string title_, device_;
  ConnectionEnds ends_;
  std::optional<Columns> columns_;
  std::vector<std::string> settings_;
  int queue_pairs_ = 1;
  std::vector<Row> rows_;
};

}  // namespace

std::vector<Measurement> import_perftest(std::string_view text, std::string_view name,
                                         const ImportHints&) {
  return {PerftestReader(name).read(text)};
}

}  // namespace lambcast::validate
