#include "validate/replay/source_replay.h"

#include <algorithm>
#include <catch2/catch.hpp>

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const std::string run = "bert-large,paper-eth40-v100,lamb,8,16,1,128,1,";
const std::string header = "model,cluster,optimizer,gpus,micro_batch,grad_accum,seq_len,steps,";

SourceSummary replayed(const std::string& columns, const std::string& rows) {
  return replay_rows(header + columns + "\n" + rows, "runs.csv", "runs");
}

double forecast_of(const std::string& quantity) {
  return replayed(quantity, run + "1\n").results.front().forecast;
}

TEST_CASE("source replay: every quantity is a view of one step") {
  const double step = forecast_of("step_time_s");
  CHECK(step > 0.1);
  CHECK(forecast_of("samples_per_s") == Approx(8 * 16 / step));
  CHECK(forecast_of("tokens_per_s") == Approx(8 * 16 * 128 / step));
  CHECK(forecast_of("tokens_per_gpu_s") == Approx(16 * 128 / step));
  const double tflops = forecast_of("tflops_per_gpu");
  CHECK(tflops > 0.1);
  const SourceSummary share = replayed("mfu_pct,peak_tflops", run + "1,125\n");
  CHECK(share.results.front().forecast == Approx(tflops / 125 * 100));
  CHECK(forecast_of("memory_gib") > 1);
}

TEST_CASE("source replay: the error is that of the time, of rates inverted") {
  const double step = forecast_of("step_time_s");
  const SourceSummary slow = replayed("step_time_s", run + std::to_string(step / 1.25) + "\n");
  CHECK(slow.results.front().error == Approx(0.25).epsilon(1e-4));
  CHECK(slow.sources.front().time.median == Approx(0.25).epsilon(1e-4));
  const SourceSummary rate =
      replayed("samples_per_s", run + std::to_string(8 * 16 / step * 1.25) + "\n");
  CHECK(rate.results.front().error == Approx(0.25).epsilon(1e-4));
  REQUIRE(rate.results.front().low);
  CHECK(*rate.results.front().low < rate.results.front().forecast);
  CHECK(*rate.results.front().high > rate.results.front().forecast);
}

TEST_CASE("source replay: a row without a forecast says why, in the CSV too") {
  const SourceSummary summary = replayed(
      "step_time_s,memory_gib", run + "2.1,\n" + "no-such-model" + run.substr(10) + "1,2\n");
  REQUIRE(summary.results.size() == 3);
  CHECK(summary.results[0].ok());
  CHECK_THAT(summary.results[1].status, Contains("unknown model 'no-such-model'"));
  const SourceScore& score = summary.sources.front();
  CHECK(score.time.rows == 1);
  CHECK(score.time.refused == 1);
  CHECK(score.memory.refused == 1);
  const std::string csv = source_results_csv(summary);
  CHECK_THAT(csv, Catch::StartsWith(
                      "source,row,case,quantity,measured,forecast,error,low,high,inside,status\n"
                      "runs,1,,step_time_s,2.1,"));
  CHECK_THAT(csv, Contains(",ok\nruns,2,,step_time_s,1,,,,,,\""));
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 4);
  CHECK_THAT(source_brief(summary), Contains("runs time: 1 rows forecast, 1 not; |error| median"));
}

TEST_CASE("source replay: median and 90th percentile of |error|") {
  std::vector<SourceResult> results(11);
  for (int i = 0; i < 11; ++i) {
    results[static_cast<std::size_t>(i)].status = "ok";
    results[static_cast<std::size_t>(i)].error = (i % 2 == 0 ? 1 : -1) * 0.01 * i;
  }
  results.emplace_back().status = "experts are not modelled yet";
  results.front().low = 0;
  results.front().high = 2;
  results.front().of.measured = 1;
  const ErrorScore score = score_of(results);
  CHECK(score.rows == 11);
  CHECK(score.refused == 1);
  CHECK(score.median == Approx(0.05));
  CHECK(score.p90 == Approx(0.09));
  CHECK(score.with_interval == 1);
  CHECK(score.inside == 1);
}

TEST_CASE("source replay: the sources that ship are within their limits") {
  const SourceSummary summary = replay_sources();
  INFO(source_table(summary));
  CHECK(summary.within);
  CHECK(summary.sources.size() >= 38);
  for (const SourceScore& source : summary.sources) {
    INFO(source.source);
    // What has a forecast is held.
    if (source.time.rows > 0) CHECK(source.time_limit);
    if (source.memory.rows > 0) CHECK(source.memory_limit);
  }
}

TEST_CASE("source replay: past its limit a source fails, and its line says so") {
  SourceSummary summary;
  SourceScore& score = summary.sources.emplace_back();
  score.source = "made_up";
  score.time = {.rows = 3, .median = 0.2, .p90 = 0.3};
  score.time_limit = ErrorLimit{0.1, 0.5};
  CHECK_THAT(source_table(summary), Contains("made_up") && Contains("PAST ITS LIMIT"));
}

}  // namespace
}  // namespace lambcast
