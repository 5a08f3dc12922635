#include "validate/program/job_trace.h"

#include <fmt/format.h>
#include <zlib.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "sim/base/temporary_folder.h"

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

// A step of 100 us: a product for 60, attention for 10, a collective from 50 to 90 of which 20 are
// exposed, and 10 idle.
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

TEST_CASE("job trace: what is whole in a truncated file is read") {
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
             Contains("--job-trace: is no JSON with events of kernels"));
  CHECK_THAT(refusal("{\"traceEvents\":[]}"), Contains("holds no kernel"));
  CHECK_THAT(refusal("[" + event("kernel", "gemm", 0, 1) + "]"), Contains("marks no step"));
  CHECK_THAT(refusal("SQLite format 3"), Contains("Nsight Systems is not read yet"));
  CHECK_THROWS_WITH(read_job_trace("nowhere.json"), Contains("is no file that can be read"));
}

TEST_CASE("job trace: its parts stand next to those of the forecast") {
  const TraceFile file(trace_text(4));
  const JobTrace trace = read_job_trace(file.path);
  const SourceFigure figure = figure_of(trace, file.path,
                                        {{"model", "bert-large"},
                                         {"cluster", "dgx-a100-80g"},
                                         {"gpus", "8"},
                                         {"optimizer", "adam"},
                                         {"micro_batch", "16"},
                                         {"grad_accum", "1"},
                                         {"steps", "10"}});
  CHECK(figure.measured == Approx(100e-6));
  const std::string report = trace_report(trace, figure);
  CHECK_THAT(report, Contains("2 steps, the first and the last left out"));
  CHECK_THAT(report, Contains("exposed communication              0.02"));
  CHECK_THAT(report, Contains("Largest disagreement: computing"));
}

}  // namespace
}  // namespace lambcast
