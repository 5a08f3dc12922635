#include "validate/program/job_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "experiments/scenario/scenario.h"
#include "models/training/run/forecast.h"
#include "sim/base/error.h"
#include "sim/base/printable.h"

namespace lambcast {
namespace {

struct Event {
  double begin_us, end_us;
  KernelKind kind;
};

struct Recorded {
  std::string gpu;
  std::vector<Event> kernels;
  std::vector<std::pair<double, double>> steps, steps_of_gpu;
  bool truncated = false;
};

constexpr std::string_view step_mark = "ProfilerStep#";

// Takes the events of a trace one by one, so that a file of any size needs the memory of its
// kernels alone.
class TraceReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit TraceReader(Recorded& recorded) : recorded_(recorded) {}

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
    if (in_devices_ && key_ == "name" && recorded_.gpu.empty()) recorded_.gpu = value;
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
    if (depth_ != event_depth_) return true;
    if (key_ == "ts") begin_us_ = value;
    if (key_ == "dur") duration_us_ = value;
    return true;
  }

  void begin_event() {
    name_.clear();
    category_.clear();
    complete_ = false;
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
      recorded_.kernels.push_back({span.first, span.second, kind_of_kernel(name_)});
    } else if (category_ == "gpu_memcpy" || category_ == "gpu_memset" || category_ == "Memcpy" ||
               category_ == "Memset") {
      recorded_.kernels.push_back({span.first, span.second, KernelKind::copies});
    }
  }

  Recorded& recorded_;
  int depth_ = 0, event_depth_ = none;
  bool in_devices_ = false, complete_ = false;
  std::string key_, name_, category_;
  double begin_us_ = -1, duration_us_ = -1;
};

// Characters of a file, plain or compressed, as the parser takes them.
class TraceText {
 public:
  using char_type = char;
  explicit TraceText(gzFile file) : file_(file), buffer_(std::size_t{1} << 20) {}
  std::char_traits<char>::int_type get_character() {
    if (at_ == end_ && !refill()) return std::char_traits<char>::eof();
    // A control character within a string is no JSON, though profilers write some.
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

Recorded recorded_in(const std::string& path) {
  if (!std::filesystem::is_regular_file(path))
    fail_input({path, 0, "--job-trace"}, "is no file that can be read");
  const std::unique_ptr<std::remove_pointer_t<gzFile>, int (*)(gzFile)> file(
      gzopen(path.c_str(), "rb"), gzclose);
  if (!file) fail_input({path, 0, "--job-trace"}, "cannot be opened");
  Recorded recorded;
  TraceReader reader(recorded);
  TraceText text(file.get());
  const TraceIterator begin(text);
  if (!begin.at_end() && *begin == 'S')
    fail_input({path, 0, "--job-trace"}, "is no trace of PyTorch's profiler",
               "JSON of torch.profiler, plain or gzip; a report of Nsight Systems is not read yet");
  nlohmann::json::sax_parse(begin, TraceIterator(), &reader);
  return recorded;
}

// Returns the length of the union of intervals.
double united_us(std::vector<std::pair<double, double>> spans) {
  std::ranges::sort(spans);
  double total = 0, end = -std::numeric_limits<double>::infinity();
  for (const auto& [from, to] : spans) {
    total += std::max(0.0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return total;
}

TracedStep step_of(const std::vector<Event>& kernels, const std::pair<double, double>& span) {
  TracedStep step{span.second - span.first};
  std::vector<std::pair<double, double>> computing, busy;
  const auto first = std::ranges::lower_bound(kernels, span.first, {}, &Event::begin_us);
  for (auto event = first; event != kernels.end() && event->begin_us < span.second; ++event) {
    const std::pair part{event->begin_us, std::min(event->end_us, span.second)};
    step.kernel_us[static_cast<std::size_t>(event->kind)] += part.second - part.first;
    busy.push_back(part);
    if (event->kind != KernelKind::communication) computing.push_back(part);
  }
  step.computing_us = united_us(std::move(computing));
  const double busy_us = united_us(std::move(busy));
  step.exposed_us = busy_us - step.computing_us;
  step.idle_us = std::max(0.0, step.time_us - busy_us);
  return step;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

KernelKind kind_of_kernel(std::string_view name) {
  std::string lower(name);
  std::ranges::transform(lower, lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  const auto has = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::any_of(
        words, [&](std::string_view word) { return lower.find(word) != std::string::npos; });
  };
  if (has({"ncclkernel", "nccldevkernel", "rccl", "msccl", "nvshmem", "deep_ep"}))
    return KernelKind::communication;
  if (has({"flash", "fmha", "attention", "sdpa"})) return KernelKind::attention;
  if (has({"gemm", "cutlass", "xmma", "nvjet", "conv", "gemv", "wgrad", "dgrad"}))
    return KernelKind::products;
  return has({"memcpy", "memset"}) ? KernelKind::copies : KernelKind::other;
}

TracedStep JobTrace::median() const {
  const auto of = [&](auto value) {
    std::vector<double> values;
    for (const TracedStep& step : steps) values.push_back(value(step));
    return median_of(std::move(values));
  };
  TracedStep middle;
  middle.time_us = of([](const TracedStep& step) { return step.time_us; });
  middle.computing_us = of([](const TracedStep& step) { return step.computing_us; });
  middle.exposed_us = of([](const TracedStep& step) { return step.exposed_us; });
  middle.idle_us = of([](const TracedStep& step) { return step.idle_us; });
  for (std::size_t kind = 0; kind < middle.kernel_us.size(); ++kind)
    middle.kernel_us[kind] = of([=](const TracedStep& step) { return step.kernel_us[kind]; });
  return middle;
}

JobTrace read_job_trace(const std::string& path) {
  Recorded recorded = recorded_in(path);
  const Where where{path, 0, "--job-trace"};
  auto& spans = recorded.steps_of_gpu.empty() ? recorded.steps : recorded.steps_of_gpu;
  if (recorded.kernels.empty())
    fail_input(where, recorded.truncated ? "is no JSON with events of kernels" : "holds no kernel",
               "a trace of torch.profiler with activities=[CPU, CUDA]");
  if (spans.empty())
    fail_input(where, "marks no step (ProfilerStep#N)",
               "a profiler with a schedule, whose step() is called after each optimizer step");
  std::ranges::sort(spans);
  std::ranges::sort(recorded.kernels, {}, &Event::begin_us);
  JobTrace trace{recorded.gpu, {}, 0, recorded.truncated};
  const bool cut = spans.size() >= 3;
  for (std::size_t i = cut ? 1 : 0; i < spans.size() - (cut ? 1 : 0); ++i)
    trace.steps.push_back(step_of(recorded.kernels, spans[i]));
  trace.left_out = cut ? 2 : 0;
  return trace;
}

SourceFigure figure_of(const JobTrace& trace, const std::string& path, const WhatIf& what_if) {
  SourceFigure figure;
  figure.name = printable(path);
  figure.what_if = what_if;
  figure.quantity = Quantity::step_time_s;
  figure.measured = trace.median().time_us * 1e-6;
  return figure;
}

std::string trace_report(const JobTrace& trace, const SourceFigure& figure) {
  const TracedStep step = trace.median();
  Catalog catalog(std::make_shared<DescriptionTexts>());
  CollectiveCosts costs;
  const Forecast result = forecast_alone(resolve(figure.what_if, catalog).training, costs);
  const PartTimes parts = part_times(result.steps.front());
  struct Part {
    const char* name;
    double measured_us, forecast_us;
  };
  const Part rows[] = {
      {"computing", step.computing_us,
       parts[PartGroup::compute] + parts[PartGroup::compression] + parts[PartGroup::optimizer]},
      {"exposed communication", step.exposed_us, parts[PartGroup::wire]},
      {"idle", step.idle_us, parts[PartGroup::bubble]}};
  std::string out = fmt::format("{}: {} step{}{}{}\n\n{:<24} {:>14} {:>14}\n", figure.name,
                                trace.steps.size(), trace.steps.size() == 1 ? "" : "s",
                                trace.left_out > 0 ? ", the first and the last left out" : "",
                                trace.truncated ? ", a truncated file" : "", "part of the step",
                                "measured (ms)", "forecast (ms)");
  const Part* worst = &rows[0];
  for (const Part& row : rows) {
    out += fmt::format("{:<24} {:>14.2f} {:>14.2f}\n", row.name, row.measured_us * 1e-3,
                       row.forecast_us * 1e-3);
    if (std::abs(row.measured_us - row.forecast_us) >
        std::abs(worst->measured_us - worst->forecast_us))
      worst = &row;
  }
  for (std::size_t kind = 0; kind < kernel_kind_names.size(); ++kind)
    out +=
        fmt::format("  {:<22} {:>14.2f}\n", kernel_kind_names[kind], step.kernel_us[kind] * 1e-3);
  return out +
         fmt::format("Largest disagreement: {}, {:.2f} ms measured and {:.2f} ms forecast.\n\n",
                     worst->name, worst->measured_us * 1e-3, worst->forecast_us * 1e-3);
}

}  // namespace lambcast
