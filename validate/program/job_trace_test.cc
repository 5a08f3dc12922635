#include "validate/program/job_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"
#include "validate/program/trace_report.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

std::string event(const std::string& category, const std::string& name, double begin_us,
                  double duration_us) {
  return fmt::format(
      R"({{"ph":"X","cat":"{}","name":"{}","pid":0,"tid":7,"ts":{:.3f},"dur":{:.3f},)"
      R"("args":{{"stream":7,"name":"inner","dur":1}}}})",
      category, name, begin_us, duration_us);
}

// Returns a step of 100 us: a product for 60 us, then attention for 10 us, and a collective from 50
// to 90 us, of which 20 us are exposed. The last 10 us are idle.
std::string events_of_step(int number, double begin_us) {
  return event("user_annotation", fmt::format("ProfilerStep#{}", number), begin_us, 100) + ",\n" +
         event("kernel", "ampere_fp16_s16816gemm", begin_us, 60) + ",\n" +
         event("kernel", "flash_fwd_kernel", begin_us + 60, 10) + ",\n" +
         event("cpu_op", "aten::mm", begin_us, 90) + ",\n" +
         event("kernel", "ncclDevKernel_AllReduce_Sum_f16_RING_LL", begin_us + 50, 40);
}

std::string trace_text(int steps) {
  std::string events;
  for (int i = 0; i < steps; ++i)
    events += (i == 0 ? "" : ",\n") + events_of_step(i, 1000 + 100 * i);
  return "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0,\"name\":\"NVIDIA A100\"}],\n"
         "\"traceEvents\":[\n" +
         events + "\n],\"traceName\":\"t.json\"}";
}

struct TraceFile {
  TemporaryFolder folder;
  std::string path = (folder.path() / "trace.json").string();
  explicit TraceFile(const std::string& text) { std::ofstream(path) << text; }
};

void check_step(const TracedStep& step) {
  CHECK(step.time_us == Approx(100));
  CHECK(step.computing_us == Approx(70));
  CHECK(step.exposed_us == Approx(20));
  CHECK(step.idle_us == Approx(10));
  CHECK(step.kernel_us[static_cast<std::size_t>(KernelKind::products)] == Approx(60));
  CHECK(step.kernel_us[static_cast<std::size_t>(KernelKind::attention)] == Approx(10));
  CHECK(step.kernel_us[static_cast<std::size_t>(KernelKind::communication)] == Approx(40));
}

TEST_CASE("job trace: a step computes, waits for the network, and idles") {
  const TraceFile file(trace_text(4));
  const JobTrace trace = read_job_trace(file.path);
  CHECK(trace.gpu == "NVIDIA A100");
  CHECK(trace.steps.size() == 2);
  CHECK(trace.left_out == 2);
  CHECK_FALSE(trace.truncated);
  for (const TracedStep& step : trace.steps) check_step(step);
  check_step(trace.median());
}

TEST_CASE("job trace: gzip, a bare array, and control characters in strings are read") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trace").string();
  std::string text = "[" + events_of_step(1, 10) + "]";
  text.replace(text.find("aten::mm"), 8, "aten\x01\n:mm");
  const gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, text.data(), static_cast<unsigned>(text.size()));
  gzclose(file);
  const JobTrace trace = read_job_trace(path);
  REQUIRE(trace.steps.size() == 1);
  check_step(trace.steps.front());
}

TEST_CASE("job trace: the complete events of a truncated file are read") {
  const std::string text = trace_text(5);
  const TraceFile file(text.substr(0, text.rfind("ncclDevKernel")));
  const JobTrace trace = read_job_trace(file.path);
  CHECK(trace.truncated);
  REQUIRE(trace.steps.size() == 3);
  check_step(trace.steps.front());
}

TEST_CASE("job trace: other files are refused in one line") {
  const auto refusal = [](const std::string& text) {
    const TraceFile file(text);
    try {
      read_job_trace(file.path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  CHECK_THAT(refusal("iteration 1/ 10"),
             Contains("--job-trace: is not a JSON trace with kernel events"));
  CHECK_THAT(refusal("{\"traceEvents\":[]}"), Contains("holds no kernel"));
  CHECK_THAT(refusal("[" + event("kernel", "gemm", 0, 1) + "]"), Contains("marks no step"));
  CHECK_THAT(refusal("SQLite format 3"), Contains("is an SQLite file that is truncated"));
  CHECK_THROWS_WITH(read_job_trace("nowhere.json"), Contains("is not a file that can be read"));
}

const WhatIf bert_on_a100{{"model", "bert-large"}, {"cluster", "dgx-a100-80g"}, {"gpus", "8"},
                          {"optimizer", "adam"},   {"micro_batch", "16"},       {"grad_accum", "1"},
                          {"steps", "10"}};

// Returns the numbers of a row of the report.
std::pair<double, double> row_of_report(const std::string& report, const std::string& name) {
  const auto at = report.find("\n" + name);
  REQUIRE(at != report.npos);
  double measured = 0, forecast = 0;
  std::istringstream(report.substr(at + 1 + name.size())) >> measured >> forecast;
  return {measured, forecast};
}

TEST_CASE(
    "job trace: each part is compared with that of the forecast, and both add up to the "
    "step") {
  const TraceFile file(trace_text(4));
  const JobTrace trace = read_job_trace(file.path);
  for (const char* tp : {"1", "2"}) {
    WhatIf what_if = bert_on_a100;
    if (tp[0] != '1') what_if["tp"] = tp;
    const SourceFigure figure = figure_of(trace, file.path, what_if);
    CHECK(figure.measured == Approx(100e-6));
    const std::string report = trace_report(trace, figure);
    INFO(report);
    CHECK_THAT(report, Contains("2 steps, the first and the last left out"));
    CHECK_THAT(report, Contains("Largest disagreement: products"));
    CHECK_THAT(report, Contains("Communication behind computing: 0.02 ms"));
    std::pair<double, double> sum;
    for (const char* name :
         {"products", "attention", "element-wise and the rest", "exposed communication", "gaps"}) {
      const auto [measured, forecast] = row_of_report(report, name);
      sum.first += measured;
      sum.second += forecast;
      CHECK((forecast > 0 || std::string_view(name) == "gaps"));
    }
    const auto [measured, forecast] = row_of_report(report, "step ");
    CHECK(sum.first == Approx(measured).margin(0.03));
    CHECK(sum.second == Approx(forecast).margin(0.03));
  }
}

// The trace and the forecast have the same kinds of kernels, in different proportions.
TEST_CASE("job trace: levels by kind are relative to that of all kernels, and keep their ratios") {
  const WhatIf llama{{"model", "llama2-7b"}, {"cluster", "hgx-h100-ndr"}, {"gpus", "8"},
                     {"optimizer", "adamw"}, {"micro_batch", "1"},        {"grad_accum", "8"},
                     {"steps", "10"}};
  const auto levels = [&](double products, double attention, double others) {
    TracedStep step{4e6, 3.9e6, 0.1e6, 0, {}, {}};
    step.alone_us = {products, attention, others, 0, 0};
    const JobTrace trace{"NVIDIA H100", 1, {step}, 0, false};
    return kind_levels(trace, figure_of(trace, "x.json", llama));
  };
  const KindLevels once = levels(2.0e6, 0.5e6, 1.4e6), twice = levels(2.0e6, 1.0e6, 1.4e6);
  CHECK(twice.attention / twice.products == Approx(2 * once.attention / once.products));
  CHECK(twice.element_wise / twice.products == Approx(once.element_wise / once.products));
  CHECK(std::min({once.products, once.attention, once.element_wise}) < 1);
  CHECK(std::max({once.products, once.attention, once.element_wise}) > 1);
  // A trace without attention kernels lacks a kind of the forecast, so all levels are 1.
  CHECK(levels(2.5e6, 0, 1.4e6) == KindLevels{});
  const JobTrace whole{"", 1, {TracedStep{100, 80, 10, 10, {}, {40, 20, 20, 0, 0}}}, 0, false};
  CHECK(kind_levels(whole, figure_of(whole, "x.json", bert_on_a100)) == KindLevels{});
}

TEST_CASE("job trace: a trace of another GPU is refused, and one that names no GPU is read") {
  const auto report = [](const std::string& gpu, const std::string& cluster) {
    JobTrace trace{gpu, 1, {TracedStep{100, 80, 10, 10, {}, {}}}, 0, false};
    WhatIf what_if = bert_on_a100;
    what_if["cluster"] = cluster;
    return trace_report(trace, figure_of(trace, "x.json", what_if));
  };
  CHECK_THROWS_WITH(report("NVIDIA H100 80GB HBM3", "dgx-a100-80g"),
                    Contains("x.json: --job-trace: is a trace of NVIDIA H100 80GB HBM3, and the "
                             "cluster has a100-80g"));
  CHECK_THROWS_WITH(report("NVIDIA GH200 480GB", "h200-ndr"), Contains("NVIDIA GH200"));
  CHECK_NOTHROW(report("NVIDIA A100-SXM4-80GB", "dgx-a100-80g"));
  CHECK_NOTHROW(report("", "dgx-a100-80g"));
  CHECK_NOTHROW(report("A GPU of our own", "dgx-a100-80g"));
}

}  // namespace
}  // namespace lambcast
