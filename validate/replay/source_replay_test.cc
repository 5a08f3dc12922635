#include "validate/replay/source_replay.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>
#include <string>

#include "validate/replay/user_runs.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

const std::string run = "bert-large,paper-eth40-v100,lamb,8,16,1,128,1,";
const std::string columns_line =
    "model,cluster,optimizer,gpus,micro_batch,grad_accum,seq_len,steps,";

SourceSummary replayed(const std::string& columns, const std::string& rows) {
  return replay_rows(columns_line + columns + "\n" + rows, "runs.csv", "runs");
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

TEST_CASE("source replay: the error is that of the time; for rates it is inverted") {
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

TEST_CASE("source replay: a row without a forecast has a reason, in the CSV too") {
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
  results[0].low = 0.5;
  results[0].high = 2;
  results[0].of.measured = 1;
  results[1].low = 1;
  results[1].high = 2;
  results[1].of.measured = 4;
  const ErrorScore score = score_of(results);
  CHECK(score.rows == 11);
  CHECK(score.refused == 1);
  CHECK(score.median == Approx(0.05));
  CHECK(score.p90 == Approx(0.09));
  CHECK(score.with_interval == 2);
  CHECK(score.inside == 1);
  // The score of the first result is log 4. That of the second is log 2 for its width plus twenty
  // times log 2 for the distance above it.
  CHECK(score.interval_score == Approx((2 + 21) * std::log(2.0) / 2));
}

TEST_CASE("source replay: the sources that ship are within their limits") {
  const SourceSummary summary = replay_sources();
  INFO(source_table(summary));
  CHECK(summary.within);
  CHECK(summary.sources.size() >= 38);
  for (const SourceScore& source : summary.sources) {
    INFO(source.source);
    // Every forecast quantity has a limit.
    if (source.time.rows > 0) CHECK(source.time_limit);
    if (source.memory.rows > 0) CHECK(source.memory_limit);
  }
}

// NeMo's table has a wider limit, since it also has rows of T5 and BERT without layouts.
TEST_CASE("source replay: NeMo's GPT rows, whose layouts are given, have a closer limit") {
  std::vector<SourceResult> given;
  for (const SourceResult& result : replay_sources().results)
    if (result.of.source == "nemo_megatron_a100_2022" && result.of.name.starts_with("gpt3"))
      given.push_back(result);
  const ErrorScore score = score_of(given);
  CHECK(score.rows == 5);
  CHECK(score.median <= 0.04);
  CHECK(score.p90 <= 0.18);
}

// Checks the coverage of 90 % that memory_error (memory.h) states, between 85 and 95 %.
TEST_CASE("source replay: nine in ten memories lie inside, with equal weight for each source") {
  const SourceSummary summary = replay_sources();
  double inside = 0, sources = 0;
  for (const SourceScore& source : summary.sources) {
    if (source.memory.rows == 0) continue;
    CHECK(source.memory.with_interval == source.memory.rows);
    inside += static_cast<double>(source.memory.inside) / static_cast<double>(source.memory.rows);
    ++sources;
  }
  REQUIRE(sources >= 4);
  CHECK(inside / sources >= 0.85);
  CHECK(inside / sources <= 0.95);
}

// Returns the forecast of the first shipped row that contains `words`. If `instead` is given, it
// replaces them in the row.
double forecast_of_row(const std::string& source, const std::string& words,
                       const std::string& instead = {}) {
  std::istringstream rows{std::string(source_rows(source))};
  std::string line, columns, row;
  while (std::getline(rows, line)) {
    if (line.starts_with('#')) continue;
    if (columns.empty()) columns = line;
    if (row.empty() && line.find(words) != std::string::npos) row = line;
  }
  INFO(source << ": " << words);
  REQUIRE_FALSE(row.empty());
  if (!instead.empty()) row.replace(row.find(words), words.size(), instead);
  const SourceSummary summary = replay_rows(columns + "\n" + row + "\n", source + ".csv", source);
  REQUIRE(summary.results.front().ok());
  return summary.results.front().forecast;
}

TEST_CASE("source replay: a layer's time is its share of the step's passes") {
  const auto of_layers = [](const std::string& layers, const std::string& quantity) {
    const SourceSummary summary = replay_rows(
        "model,cluster,gpus,framework,tp,optimizer,micro_batch,grad_accum,seq_len,steps,"
        "model.layers," +
            quantity + "\ngpt2-xl,dgx-a100-80g,5,megatron,5,adamw,1,1,1024,1," + layers + ",1\n",
        "runs.csv", "runs");
    INFO(summary.results.front().status);
    REQUIRE(summary.results.front().ok());
    return summary.results.front().forecast;
  };
  const double forward = of_layers("2", "layer_forward_s");
  const double backward = of_layers("2", "layer_backward_s");
  CHECK(of_layers("7", "layer_forward_s") == Approx(forward));
  // Each additional layer adds its passes and the update of its parameters.
  const double added = (of_layers("22", "step_time_s") - of_layers("2", "step_time_s")) / 20;
  CHECK(added > forward + backward);
  CHECK(added == Approx(forward + backward).epsilon(0.2));
  const SourceSummary without = replayed("layer_forward_s", run + "1\n");
  CHECK_THAT(without.results.front().status, Contains("only with a parallel layout"));
}

// Effects of layout changes as printed in papers and tables. Only the first section uses rows that
// set a parameter (the host's time); the others follow from the mechanisms.
TEST_CASE("source replay: published relations between runs") {
  SECTION("ZeRO-3 of 175B falls to a third from 384 to 1,536 GPUs at a fixed batch") {
    const auto tflops = [](const char* row) { return forecast_of_row("megatron_sc21_zero3", row); };
    CHECK(tflops("1536,384,4,144") / tflops("1536,1536,1,44") == Approx(144 / 44.).epsilon(0.25));
  }
  SECTION("per micro batch, 94, 101 and 116 ms on 512, 4,096 and 10,752 H100") {
    const auto per_micro_batch = [](const char* row, int micro_batches) {
      return forecast_of_row("mlperf_gpt3", row) / micro_batches;
    };
    const double many = per_micro_batch("v3.0,NVIDIA,dgxh100_n64", 128);
    const double fewer = per_micro_batch("n512_ngc23.09", 16);
    const double few = per_micro_batch("eos-dfw_n1344", 8);
    CHECK(fewer / many == Approx(101 / 94.).epsilon(0.1));
    CHECK(few / fewer == Approx(116 / 101.).epsilon(0.1));
  }
  SECTION("64 heads of 216 elements against 128 of 108") {
    const auto seconds = [](const char* row) { return forecast_of_row("bigscience_a100", row); };
    CHECK(seconds("13824,128,8,8,6,4,2048,fp16,54,162.72") /
              seconds("13824,64,8,8,6,4,2048,fp16,,121.28") ==
          Approx(162.72 / 121.28).epsilon(0.1));
  }
  SECTION("zero bubble and interleaving against 1F1B, with few and with many micro batches") {
    const auto samples = [](const char* row) { return forecast_of_row("zero_bubble_a100", row); };
    CHECK(samples("2304,8,6,24,zb1p") / samples("2304,8,6,24,1f1b") ==
          Approx(12.9 / 11.8).epsilon(0.05));
    CHECK(samples("2304,8,6,64,zb1p") / samples("2304,8,6,64,1f1b") ==
          Approx(14.2 / 13.6).epsilon(0.05));
    // The paper has no 1F1B with 32 micro batches; its value lies between those of 24 and 64.
    const double plain =
        forecast_of_row("zero_bubble_a100", "2304,8,6,32,interleaved", "2304,8,6,32,1f1b");
    CHECK(plain > samples("2304,8,6,24,1f1b"));
    CHECK(plain < samples("2304,8,6,64,1f1b"));
    CHECK(samples("2304,8,6,32,interleaved") > 1.03 * plain);
    CHECK(samples("2304,8,6,32,interleaved") / samples("2304,8,6,64,1f1b") ==
          Approx(13.4 / 13.6).epsilon(0.05));
  }
  SECTION("tensor parallelism with collectives behind products") {
    const auto tokens = [](const char* row) { return forecast_of_row("torchtitan_h100", row); };
    CHECK(tokens("fp8_tensorwise,1,1,942.4") / tokens("fp8,1,0,829") ==
          Approx(942.4 / 829).epsilon(0.1));
  }
}

// Source: table 3 of the paper. No number was fitted to it, but the rate of the links was kept
// knowing it (topologies/presets/megascale-a100.toml).
TEST_CASE("source replay: the gains of MegaScale's successive changes follow from the mechanisms") {
  const std::pair<const char*, double> steps[] = {
      {"0,", 47.7}, {"2,", 53.3}, {"4,", 58.0}, {"6,", 61.2}, {"8,", 65.3}};
  double last = 0;
  for (const auto& [row, measured] : steps) {
    INFO(row);
    const double mfu = forecast_of_row("megascale_ablation", row);
    CHECK(mfu > last);
    last = mfu;
    CHECK(mfu / forecast_of_row("megascale_ablation", "0,") ==
          Approx(measured / 47.7).epsilon(0.09));
  }
}

// A step takes s and an average takes a, so the mean step takes s + a / H. From H = 1 to 2 it falls
// by a / 2, from 2 to 4 by a / 4.
TEST_CASE("source replay: a run that averages every H steps is the mean of such a round") {
  const std::string rest = ",bert-large,commodity-10gbe,16,8,1,adam,1\n";
  const std::vector<SourceResult> results = replay_figures(
      figures_of_runs(parse_rows("step_time_s,exchange,model,cluster,gpus,micro_batch,grad_accum,"
                                 "optimizer,steps\n1,localsgd:1" +
                                     rest + "1,localsgd:2" + rest + "1,localsgd:4" + rest,
                                 "runs.csv")));
  REQUIRE(results.size() == 3);
  const double first = results[0].forecast - results[1].forecast;
  const double second = results[1].forecast - results[2].forecast;
  CHECK(second > 0);
  CHECK(first == Approx(2 * second).epsilon(1e-6));
  for (const SourceResult& result : results) {
    CHECK(result.ok());
    CHECK(*result.low < result.forecast);
  }
}

TEST_CASE("source replay: a source past its limit fails, and its line states that") {
  SourceSummary summary;
  SourceScore& score = summary.sources.emplace_back();
  score.source = "made_up";
  score.time = {.rows = 3, .median = 0.2, .p90 = 0.3};
  score.time_limit = ErrorLimit{0.1, 0.5};
  CHECK_THAT(source_table(summary), Contains("made_up") && Contains("PAST ITS LIMIT"));
}

}  // namespace
}  // namespace lambcast
