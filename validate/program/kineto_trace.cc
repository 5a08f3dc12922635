#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "sim/base/error.h"
#include "validate/program/recorded_trace.h"

namespace lambcast {
namespace {

constexpr std::string_view step_mark = "ProfilerStep#";

// Returns a number of a trace as an integer; 0 unless it is one that a double holds exactly.
std::int64_t whole(double value) {
  constexpr double most = 9007199254740992;  // 2^53
  return value > 0 && value < most ? static_cast<std::int64_t>(value) : 0;
}

// Reads the events of a trace one by one, so that a file of any size needs memory only for its
// kernels.
class TraceReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TraceReader(RecordedTrace& recorded) : recorded_(recorded) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& value) override {
    if (depth_ == event_depth_ && key_ == "name") name_ = value;
    if (depth_ == event_depth_ && key_ == "ph") complete_ = value == "X";
    if (depth_ == event_depth_ && key_ == "cat") category_ = value;
    if (depth_ == event_depth_ + 2 && key_ == "Input type" && type_.empty()) type_ = value;
    if (in_devices_ && key_ == "name" && recorded_.gpu.empty()) recorded_.gpu = value;
    if (depth_ == event_depth_ + 1) {
      if (key_ == "Collective name") call_.op = value;
      if (key_ == "dtype") call_.type = value;
      if (key_ == "Process Group Ranks") call_.members = value;
    }
    return true;
  }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override {
    if (++depth_ == event_depth_) begin_event();
    return true;
  }
  bool end_object() override {
    if (depth_-- == event_depth_) end_event();
    return true;
  }
  bool start_array(std::size_t) override {
    ++depth_;
    if (depth_ == 1 || (depth_ == 2 && key_ == "traceEvents")) event_depth_ = depth_ + 1;
    if (depth_ == 2 && key_ == "deviceProperties") in_devices_ = true;
    if (depth_ == event_depth_ + 3 && key_ == "Input Dims") inputs_.emplace_back();
    return true;
  }
  bool end_array() override {
    if (depth_ + 1 == event_depth_) event_depth_ = none;
    if (depth_ == 2) in_devices_ = false;
    --depth_;
    return true;
  }
  bool key(string_t& value) override {
    key_ = value;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override {
    recorded_.truncated = true;
    return false;
  }

 private:
  static constexpr int none = -1;

  bool number(double value) {
    if (depth_ == event_depth_ + 1) {
      if (key_ == "In msg nelems") call_.elements_in = value;
      if (key_ == "Out msg nelems") call_.elements_out = value;
      if (key_ == "Group size") call_.ranks = static_cast<int>(value);
      if (key_ == "correlation" && value > 0)
        correlation_ = static_cast<std::uint32_t>(whole(value));
    }
    if (depth_ == event_depth_ + 3 && key_ == "Input Dims" && !inputs_.empty())
      inputs_.back().push_back(whole(value));
    if (depth_ != event_depth_) return true;
    if (key_ == "ts") begin_us_ = value;
    if (key_ == "dur") duration_us_ = value;
    if (key_ == "tid") thread_ = whole(value);
    return true;
  }

  void begin_event() {
    name_.clear();
    category_.clear();
    complete_ = false;
    call_ = {};
    inputs_.clear();
    type_.clear();
    correlation_ = 0;
    thread_ = 0;
    begin_us_ = duration_us_ = -1;
  }

  void end_event() {
    if (!complete_ || duration_us_ < 0 || !std::isfinite(begin_us_ + duration_us_)) return;
    const std::pair span{begin_us_, begin_us_ + duration_us_};
    const bool of_gpu = category_ == "gpu_user_annotation";
    if (of_gpu || category_ == "user_annotation") {
      if (name_.starts_with(step_mark))
        (of_gpu ? recorded_.steps_of_gpu : recorded_.steps).push_back(span);
    } else if (category_ == "kernel" || category_ == "Kernel") {
      recorded_.kernels.push_back(
          {span.first, span.second, kind_of_kernel(name_), number_of_call(), correlation_});
    } else if (category_ == "gpu_memcpy" || category_ == "gpu_memset" || category_ == "Memcpy" ||
               category_ == "Memset") {
      recorded_.kernels.push_back({span.first, span.second, KernelKind::copies});
    } else if (category_ == "cpu_op") {
      if (const auto product = product_of(name_, inputs_, type_))
        recorded_.products.add(*product, thread_, span.first, span.second);
    } else if ((category_ == "cuda_runtime" || category_ == "cuda_driver") && correlation_ > 0) {
      recorded_.products.add_launch(correlation_, thread_, span.first);
    }
  }

  // Returns the index of the event's collective, or -1 if it records no collective of several
  // ranks.
  int number_of_call() {
    if (call_.op.empty() || call_.ranks < 2) return -1;
    auto& calls = recorded_.collectives;
    const auto found = std::ranges::find_if(
        calls, [&](const TracedCollective& other) { return other.same_call(call_); });
    const auto index = static_cast<int>(found - calls.begin());
    if (found == calls.end()) calls.push_back(call_);
    return index;
  }

  RecordedTrace& recorded_;
  TracedCollective call_;
  std::vector<TensorDims> inputs_;
  std::string type_;
  std::uint32_t correlation_ = 0;
  std::int64_t thread_ = 0;
  int depth_ = 0, event_depth_ = none;
  bool in_devices_ = false, complete_ = false;
  std::string key_, name_, category_;
  double begin_us_ = -1, duration_us_ = -1;
};

// Provides the characters of a file, plain or compressed, to the parser.
class TraceText {
 public:
  using char_type = char;
  explicit TraceText(gzFile file) : file_(file), buffer_(std::size_t{1} << 20) {}
  std::char_traits<char>::int_type get_character() {
    if (at_ == end_ && !refill()) return std::char_traits<char>::eof();
    // Control characters within a string are invalid JSON, but some profilers write them.
    const char c = buffer_[at_++];
    return std::char_traits<char>::to_int_type(c >= 0 && c < ' ' ? ' ' : c);
  }

 private:
  bool refill() {
    const int read = gzread(file_, buffer_.data(), static_cast<unsigned>(buffer_.size()));
    at_ = 0;
    end_ = read > 0 ? static_cast<std::size_t>(read) : 0;
    return end_ > 0;
  }

  gzFile file_;
  std::vector<char> buffer_;
  std::size_t at_ = 0, end_ = 0;
};

// Input iterator over TraceText for the JSON parser.
class TraceIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = char;

  TraceIterator() = default;
  explicit TraceIterator(TraceText& text) : text_(&text), next_(text.get_character()) {}
  char operator*() const { return std::char_traits<char>::to_char_type(next_); }
  TraceIterator& operator++() {
    next_ = text_->get_character();
    return *this;
  }
  TraceIterator operator++(int) {
    TraceIterator before = *this;
    ++*this;
    return before;
  }
  bool at_end() const { return text_ == nullptr || next_ == std::char_traits<char>::eof(); }
  friend bool operator==(const TraceIterator& a, const TraceIterator& b) {
    return a.at_end() == b.at_end();
  }

 private:
  TraceText* text_ = nullptr;
  std::char_traits<char>::int_type next_ = std::char_traits<char>::eof();
};

}  // namespace

RecordedTrace read_kineto(const std::string& path) {
  const std::unique_ptr<std::remove_pointer_t<gzFile>, int (*)(gzFile)> file(
      gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail_input({path, 0, "--job-trace"}, "cannot be opened");
  RecordedTrace recorded;
  TraceReader reader(recorded);
  TraceText text(file.get());
  nlohmann::json::sax_parse(TraceIterator(text), TraceIterator(), &reader);
  return recorded;
}

}  // namespace lambcast
