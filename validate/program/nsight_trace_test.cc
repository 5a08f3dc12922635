#include <fmt/format.h>
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"
#include "validate/program/job_trace.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

constexpr const char* kernel_names[] = {
    "ampere_fp16_s16816gemm_fp16_128x64", "void flash_fwd_kernel<T>",
    "void at::native::vectorized_elementwise_kernel<4>", "ncclDevKernel_AllReduce_Sum_f16_RING_LL"};

// A job with consecutive steps; times in ns. `kind` is an index of kernel_names; a larger value is
// a copy.
struct MadeUpKernel {
  std::int64_t begin = 0, end = 0;
  std::size_t kind = 0;
  int step = 0;
};
struct MadeUpJob {
  std::vector<std::pair<std::int64_t, std::int64_t>> steps;  // as seen by the host
  std::vector<MadeUpKernel> kernels;
};

MadeUpJob made_up_job(unsigned seed) {
  std::mt19937 random(seed);
  const auto drawn = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  MadeUpJob job;
  std::int64_t host = 1'000'000, gpu = 1'200'000;
  const int steps = static_cast<int>(drawn(1, 6));
  for (int step = 0; step < steps; ++step) {
    job.steps.emplace_back(host, host + drawn(200'000, 400'000));
    host = job.steps.back().second;
    // Streams overlap within a step; the next step begins after it.
    const std::int64_t begin = std::max(gpu, job.steps.back().first + drawn(1'000, 90'000));
    for (int kernel = 0; kernel < 40; ++kernel) {
      const std::int64_t at = begin + (kernel == 0 ? 0 : drawn(0, 250'000));
      const std::int64_t end = at + drawn(500, 20'000);
      job.kernels.push_back({at, end, static_cast<std::size_t>(drawn(0, 4)), step});
      gpu = std::max(gpu, end);
    }
  }
  return job;
}

std::string kineto_of(const MadeUpJob& job, bool with_gpu_steps) {
  std::string events;
  const auto add = [&](const char* category, const std::string& name, std::int64_t begin,
                       std::int64_t end) {
    events += fmt::format(
        "{}{{\"ph\":\"X\",\"cat\":\"{}\",\"name\":\"{}\",\"ts\":{}.{:03},\"dur\":{}.{:03}}}",
        events.empty() ? "" : ",\n", category, name, begin / 1000, begin % 1000,
        (end - begin) / 1000, (end - begin) % 1000);
  };
  for (std::size_t step = 0; step < job.steps.size(); ++step) {
    const std::string name = fmt::format("ProfilerStep#{}", step);
    add("user_annotation", name, job.steps[step].first, job.steps[step].second);
    std::int64_t begin = INT64_MAX, end = 0;
    for (const MadeUpKernel& kernel : job.kernels)
      if (kernel.step == static_cast<int>(step)) {
        begin = std::min(begin, kernel.begin);
        end = std::max(end, kernel.end);
      }
    if (with_gpu_steps) add("gpu_user_annotation", name, begin, end);
  }
  for (const MadeUpKernel& kernel : job.kernels) {
    const bool copy = kernel.kind == std::size(kernel_names);
    add(copy ? "gpu_memcpy" : "kernel", copy ? "Memcpy HtoD" : kernel_names[kernel.kind],
        kernel.begin, kernel.end);
  }
  return "{\"deviceProperties\":[{\"name\":\"NVIDIA A100\"}],\"traceEvents\":[" + events + "]}";
}

void execute(const std::string& path, const std::string& sql) {
  sqlite3* database = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &database) == SQLITE_OK);
  CHECK(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(database);
}

// Adds a second rank of the node, whose kernels and steps must not count.
std::string nsight_of(const MadeUpJob& job, bool with_launches, const char* step_name) {
  constexpr std::int64_t process = 7LL << 24, thread = process | 9, other = 8LL << 24;
  std::string sql =
      "BEGIN; CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
      "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT);"
      "INSERT INTO TARGET_INFO_GPU VALUES(0, 'NVIDIA A100');"
      "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
      "globalTid INTEGER, textId INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
      "correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
      "correlationId INTEGER, globalPid INTEGER, bytes INTEGER);";
  if (with_launches)
    sql +=
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, "
        "correlationId INTEGER);";
  const auto row = [&](const char* table, const std::string& values) {
    sql += fmt::format("INSERT INTO {} VALUES({});", table, values);
  };
  for (std::size_t name = 0; name < std::size(kernel_names); ++name)
    row("StringIds", fmt::format("{}, '{}'", name + 1, kernel_names[name]));
  for (std::size_t step = 0; step < job.steps.size(); ++step) {
    const auto& [begin, end] = job.steps[step];
    row("StringIds", fmt::format("{}, '{}{}'", 100 + step, step_name, step));
    row("NVTX_EVENTS", fmt::format("{}, {}, 59, {}, {}, {}", begin, end,
                                   step % 2 == 0 ? fmt::format("'{}{}'", step_name, step) : "NULL",
                                   thread, 100 + step));
    row("NVTX_EVENTS", fmt::format("{}, {}, 59, 'forward', {}, NULL", begin, end - 10, thread));
    row("NVTX_EVENTS", fmt::format("{}, {}, 59, '{}9', {}, NULL", begin, end, step_name, other));
  }
  int call = 0;
  for (const MadeUpKernel& kernel : job.kernels) {
    const auto& [begin, end] = job.steps[static_cast<std::size_t>(kernel.step)];
    ++call;
    const std::string of =
        fmt::format("{}, {}, 0, {}, {}", kernel.begin, kernel.end, call, process);
    if (kernel.kind == std::size(kernel_names))
      row("CUPTI_ACTIVITY_KIND_MEMCPY", of + ", 4096");
    else
      row("CUPTI_ACTIVITY_KIND_KERNEL", fmt::format("{}, {}, 0", of, kernel.kind + 1));
    row("CUPTI_ACTIVITY_KIND_KERNEL",
        fmt::format("{}, {}, 1, {}, {}, 1, 0", kernel.begin - 300, kernel.end + 300, call, other));
    if (with_launches)
      row("CUPTI_ACTIVITY_KIND_RUNTIME",
          fmt::format("{}, {}, {}, {}", begin + call % 1000, end, thread, call));
  }
  return sql + "COMMIT;";
}

TEST_CASE("nsight trace: a job has the same breakdown as in its Kineto trace") {
  const char* step_names[] = {"ProfilerStep#", "step ", "Iteration_", "iter"};
  for (unsigned seed = 0; seed < 40; ++seed) {
    const MadeUpJob job = made_up_job(seed);
    const bool with_launches = seed % 2 == 0;
    INFO(seed);
    const TemporaryFolder folder;
    const std::string json = (folder.path() / "trace.json").string();
    const std::string sqlite = (folder.path() / "trace.sqlite").string();
    std::ofstream(json) << kineto_of(job, with_launches);
    execute(sqlite, nsight_of(job, with_launches, step_names[seed % 4]));
    const JobTrace kineto = read_job_trace(json), nsight = read_job_trace(sqlite);
    CHECK(nsight.gpu == kineto.gpu);
    CHECK(nsight.gpus == 2);
    CHECK(nsight.left_out == kineto.left_out);
    REQUIRE(nsight.steps.size() == kineto.steps.size());
    for (std::size_t i = 0; i < kineto.steps.size(); ++i) {
      const TracedStep &ours = nsight.steps[i], &theirs = kineto.steps[i];
      CHECK(ours.time_us == Approx(theirs.time_us));
      CHECK(ours.computing_us == Approx(theirs.computing_us).margin(1e-6));
      CHECK(ours.exposed_us == Approx(theirs.exposed_us).margin(1e-6));
      CHECK(ours.idle_us == Approx(theirs.idle_us).margin(1e-6));
      CHECK(ours.computing_us + ours.exposed_us + ours.idle_us == Approx(ours.time_us));
      double alone = 0;
      for (std::size_t kind = 0; kind < kernel_kind_names.size(); ++kind) {
        CHECK(ours.kernel_us[kind] == Approx(theirs.kernel_us[kind]).margin(1e-6));
        CHECK(ours.alone_us[kind] == Approx(theirs.alone_us[kind]).margin(1e-6));
        CHECK(ours.alone_us[kind] <= ours.kernel_us[kind] + 1e-6);
        alone += ours.alone_us[kind];
      }
      CHECK(alone == Approx(ours.computing_us + ours.exposed_us));
    }
  }
}

TEST_CASE("nsight trace: a step of the GPU lasts until the next one begins") {
  MadeUpJob job;
  for (int step = 0; step < 4; ++step) {
    job.steps.emplace_back(step * 100'000, (step + 1) * 100'000);
    job.kernels.push_back({step * 100'000 + 50'000, step * 100'000 + 130'000, 0, step});
  }
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trace.sqlite").string();
  execute(path, nsight_of(job, true, "step"));
  const TracedStep step = read_job_trace(path).median();
  CHECK(step.time_us == Approx(100));
  CHECK(step.computing_us == Approx(80));
  CHECK(step.idle_us == Approx(20));
}

TEST_CASE("nsight trace: damaged and other SQLite files are refused in one line") {
  const TemporaryFolder folder;
  const std::string path = (folder.path() / "trace.sqlite").string();
  const auto refusal = [&] {
    try {
      read_job_trace(path);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("read");
  };
  const MadeUpJob job = made_up_job(5);
  execute(path, nsight_of(job, true, "forward"));
  CHECK_THAT(refusal(), Contains("marks no step"));
  std::ifstream in(path, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(in), {}};
  std::ofstream(path, std::ios::binary) << whole.substr(0, whole.size() / 2);
  CHECK_THAT(refusal(), Contains("is an SQLite file that is truncated or damaged"));
  std::ofstream(path, std::ios::binary).close();
  execute(path, "CREATE TABLE other(a INTEGER);");
  CHECK_THAT(refusal(), Contains("without kernels of Nsight Systems"));
  execute(path, "CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER);");
  CHECK_THAT(refusal(), Contains("CUDA graphs as a whole"));
}

}  // namespace
}  // namespace lambcast
