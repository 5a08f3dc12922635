#include "experiments/sweep/sweep_case.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>

#include "experiments/sweep/result_row.h"
#include "experiments/sweep/sweep_table.h"
#include "sim/base/check.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::Equals;
using Values = std::vector<std::string>;

// A sweep of 3 optimizers x 4 GPU counts x 5 sequence lengths, one of which is too long for the
// model.
constexpr std::string_view sixty_points = R"(
name = "sixty"
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
micro_batch = 16
steps = 100
freeze_step = "20%"
[grid]
optimizer = ["lamb", "onebit_lamb", "onebit_adam"]
gpus = "4:32:x2"
seq_len = [32, 64, 128, 512, 1024]
)";

SweepSummary run(const SweepPlan& sweep, const std::filesystem::path& out, int jobs = 1,
                 bool resume = false) {
  return run_sweep(sweep, {.out = out, .jobs = jobs, .resume = resume});
}

std::string results_of(const std::filesystem::path& out) { return text_of(out / "results.csv"); }

TEST_CASE("sweep: rows in the plan's order, points that cannot run with their reason") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  REQUIRE(sweep.points.size() == 60);
  const SweepSummary summary = run(sweep, folder.path() / "out");
  CHECK(summary.complete);
  CHECK(summary.points == 60);
  CHECK(summary.written == 60);
  const csv::Table table = csv::parse(results_of(folder.path() / "out"), "results.csv");
  CHECK(table.header == result_columns());
  REQUIRE(table.rows.size() == 60);
  std::size_t infeasible = 0;
  for (std::size_t i = 0; i < 60; ++i) {
    for (const char* key : {"optimizer", "gpus", "seq_len", "model", "cluster"})
      CHECK(table.text(i, key) == sweep.points[i].at(key));
    const std::string& status = table.text(i, "status");
    if (status != "ok") ++infeasible;
    if (table.text(i, "seq_len") == "1024") {
      CHECK(status ==
            "infeasible: --seq-len: 1024 is out of range for bert-large (allowed: 1 to 512)");
      CHECK(table.text(i, "run_time_s").empty());
    } else {
      CHECK(table.number(i, "run_time_s") > 0);
    }
  }
  CHECK(summary.infeasible == infeasible);
  CHECK(infeasible >= 12);
  const auto manifest = nlohmann::json::parse(text_of(folder.path() / "out" / "manifest.json"));
  CHECK(manifest.at("schema_version") == 1);
  CHECK(manifest.at("name") == "sixty");
  CHECK(manifest.at("points") == 60);
  CHECK(manifest.at("complete") == true);
  CHECK(manifest.at("infeasible") == infeasible);
  CHECK(manifest.at("columns").get<Values>() == result_columns());
}

TEST_CASE("sweep: a point with its own network does not count as calibrated") {
  const TemporaryFolder folder;
  run(plan(R"([base]
    model = "bert-large"
    cluster = "perlmutter-a100"
    optimizer = "lamb"
    gpus = 16
    micro_batch = 16
    [[variant]]
    "cluster.stack.compute_scale" = 1.1
    [[variant]]
    "cluster.nic.bandwidth" = "10Gbit/s"
    [[variant]]
    "cluster.usd_per_gpu_hour" = 2.0)"),
      folder.path());
  const csv::Table table = csv::parse(results_of(folder.path()), "results.csv");
  REQUIRE(table.rows.size() == 3);
  for (const std::size_t row : {0, 1, 2})
    CHECK(table.text(row, "communication_calibrated") == "false");
}

TEST_CASE("sweep: rows and table are the same in memory as in a folder") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  run(sweep, folder.path());
  const auto texts = std::make_shared<DescriptionTexts>();
  for (const int jobs : {0, 1, 4}) {
    const SweptRows swept = sweep_in_memory(sweep, {.jobs = jobs}, texts);
    CHECK(swept.complete);
    std::string file = csv::row(result_columns()) + "\n";
    for (const std::string& row : swept.rows) file += row + "\n";
    CHECK_THAT(file, Equals(results_of(folder.path())));
    CHECK_THAT(sweep_table(sweep, swept.rows), Equals(sweep_table(sweep, folder.path())));
  }
  // A stopped sweep has the first rows, and states that it is not complete.
  std::size_t most = 0;
  const SweptRows stopped = sweep_in_memory(sweep,
                                            {.progress =
                                                 [&](std::size_t done, std::size_t) {
                                                   most = done;
                                                   return done < 7;
                                                 }},
                                            texts);
  CHECK(stopped.rows.size() == most);
  CHECK(stopped.complete == (most == sweep.points.size()));
}

TEST_CASE("sweep: a point that does not fit in memory is infeasible and still forecast") {
  const TemporaryFolder folder;
  run(plan(R"([base]
    model = "gpt2-xl"
    cluster = "paper-eth40-v100"
    optimizer = "lamb"
    gpus = 8
    micro_batch = 64)"),
      folder.path());
  const csv::Table table = csv::parse(results_of(folder.path()), "results.csv");
  CHECK_THAT(table.text(0, "status"),
             Catch::StartsWith("infeasible: needs ") && Contains("a GPU, v100-16g has 17.18 GB"));
  CHECK(table.text(0, "fits") == "false");
  CHECK(table.number(0, "run_time_s") > 0);
}

TEST_CASE("sweep: a warning of simulate is listed once, with the number of points") {
  TemporaryFolder folder;
  SweepOptions options;
  options.out = folder.path() / "out";
  const SweepSummary summary =
      run_sweep(plan("[base]\nmodel = \"mixtral-8x7b\"\ncluster = \"hgx-h100-ndr\"\n"
                     "micro_batch = 1\nseq_len = 128\noptimizer = \"adamw\"\nsteps = 100\n"
                     "precision = \"fp32\"\n[grid]\ngpus = [64, 128]"),
                options);
  const auto unnamed = [](std::size_t) { return std::string(); };
  const std::vector<std::string> said = summary.findings.sentences(unnamed);
  REQUIRE(said.size() == 1);
  CHECK(summary.findings.brief(unnamed, "") == said);  // one warning is printed in full
  CHECK_THAT(said[0], Contains("warning: all 2 points: every GPU holds") &&
                          Contains("[experts-replicated]"));
}

TEST_CASE("sweep: an elastic batch follows the GPU count of each point") {
  const TemporaryFolder folder;
  const std::string config = folder.file("ds.json", R"({"optimizer": {"type": "Lamb"},
    "fp16": {"enabled": true},
    "elasticity": {"enabled": true, "max_train_batch_size": 480, "micro_batch_sizes": [2, 3]}})");
  run(plan(fmt::format(R"(
name = "elastic"
[base]
config = '{}'
model = "bert-large"
cluster = "paper-eth40-v100"
steps = 100
[grid]
gpus = [8, 24, 25, 300]
)",
                       config)),
      folder.path());
  const csv::Table table = csv::parse(results_of(folder.path()), "results.csv");
  REQUIRE(table.rows.size() == 4);
  const auto numbers = [&](std::size_t row) {
    return Values{table.text(row, "micro_batch"), table.text(row, "grad_accum"),
                  table.text(row, "global_batch")};
  };
  CHECK(numbers(0) == Values{"3", "20", "480"});
  CHECK(numbers(1) == Values{"2", "10", "480"});  // 480 / 24 = 20 is not a multiple of 3
  // 25 is not a divisor, so this point has another batch
  CHECK(numbers(2) == Values{"3", "6", "450"});
  for (std::size_t row = 0; row < 3; ++row) CHECK(table.text(row, "status") == "ok");
  CHECK_THAT(table.text(3, "status"),
             Catch::StartsWith("infeasible: ") && Contains("Train batch size: 0"));
}

TEST_CASE("sweep: a row is one line for any input of a user") {
  Catalog catalog;
  CollectiveCosts costs;
  for (const char* text : {"a\nb", "a,b", "\"a\"", "a\r\nb", ""}) {
    const std::string row = sweep_row({{"model", text}, {"cluster", text}}, catalog, costs).text;
    CHECK(row.find('\n') == std::string::npos);
    CHECK(csv::parse(csv::row(result_columns()) + "\n" + row + "\n", "row").rows.size() == 1);
  }
  const SweepRow faults =
      row_or_reason({}, []() -> SweepRow { throw Error(Exit::usage, "one\nanother"); });
  CHECK_THAT(faults.text, Contains("infeasible: one; another"));
}

TEST_CASE("sweep: the same bytes for any number of threads") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points, {parse_scan("gpus=1:40:1")});  // 600 points
  run(sweep, folder.path() / "1", 1);
  const std::string one = results_of(folder.path() / "1");
  CHECK(std::count(one.begin(), one.end(), '\n') == 601);
  for (const int jobs : {2, 5}) {
    const std::filesystem::path out = folder.path() / fmt::format("{}", jobs);
    run(sweep, out, jobs);
    CHECK(results_of(out) == one);
    CHECK(text_of(out / "manifest.json") == text_of(folder.path() / "1" / "manifest.json"));
  }
}

TEST_CASE("sweep: a file cut anywhere is resumed to the same bytes") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  run(sweep, folder.path() / "whole");
  const std::string whole = results_of(folder.path() / "whole");
  const std::size_t header = whole.find('\n') + 1;
  const std::size_t second = whole.find('\n', header) + 1;
  // Sizes to cut to: zero, within the header, before and after its line end, within the first row,
  // at its end, within a later row, just before the last line end, and the whole file.
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, header / 2, header - 1, header, header + 1, second - 1,
        second, second + 100, whole.size() / 2, whole.size() - 1, whole.size()}) {
    INFO("cut to " << size << " of " << whole.size() << " bytes");
    const std::filesystem::path out = folder.path() / fmt::format("cut-{}", size);
    run(sweep, out);
    std::filesystem::resize_file(out / "results.csv", size);
    const SweepSummary summary = run(sweep, out, 2, true);
    CHECK(summary.complete);
    const auto kept = std::count(whole.begin(), whole.begin() + static_cast<long>(size), '\n');
    CHECK(summary.written == 60 - static_cast<std::size_t>(std::max<long>(0, kept - 1)));
    CHECK(results_of(out) == whole);
    CHECK(text_of(out / "manifest.json") == text_of(folder.path() / "whole" / "manifest.json"));
  }
}

TEST_CASE("sweep: a stop keeps finished rows, and resuming repeats nothing") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points, {parse_scan("gpus=1:40:1")});
  run(sweep, folder.path() / "whole", 2);
  const std::string whole = results_of(folder.path() / "whole");
  const std::filesystem::path out = folder.path() / "stopped";
  // A sweep that stops at every progress call needs several runs.
  const auto stop = [](std::size_t, std::size_t) { return false; };
  std::size_t written = 0, runs = 0;
  SweepSummary summary;
  do {
    summary = run_sweep(sweep, {.out = out, .jobs = 3, .resume = runs > 0, .progress = stop});
    CHECK(summary.written > 0);
    written += summary.written;
    const std::string so_far = results_of(out);
    CHECK(whole.starts_with(so_far));
    CHECK(so_far.back() == '\n');
    const auto manifest = nlohmann::json::parse(text_of(out / "manifest.json"));
    CHECK(manifest.at("complete") == summary.complete);
  } while (++runs < 600 && !summary.complete);
  CHECK(runs > 1);
  CHECK(written == 600);
  CHECK(results_of(out) == whole);
}

TEST_CASE("sweep: existing results are neither overwritten nor mixed") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points), other = plan(sixty_points, {parse_list("gpus=8")});
  run(sweep, folder.path());
  const std::string before = results_of(folder.path());
  CHECK_THROWS_WITH(
      run(sweep, folder.path()),
      Contains("holds results already; go on with --resume, or choose another --out"));
  CHECK_THROWS_WITH(run(other, folder.path(), 1, true),
                    Contains("holds the results of another sweep; choose another --out"));
  folder.file("manifest.json", "{ torn");
  CHECK_THROWS_WITH(run(sweep, folder.path(), 1, true), Contains("of another sweep"));
  CHECK(results_of(folder.path()) == before);
}

TEST_CASE("sweep: a results file of another shape is refused, not continued") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  run(sweep, folder.path());
  const std::string whole = results_of(folder.path());
  for (const std::string& text :
       {std::string("something else\n"), std::string("x"), "x" + whole, whole + "one,row,more\n"}) {
    folder.file("results.csv", text);
    CHECK_THROWS_WITH(run(sweep, folder.path(), 1, true),
                      Contains("results.csv: is not the results of this sweep"));
    CHECK(results_of(folder.path()) == text);
  }
}

TEST_CASE("sweep: results with the columns of an older version are refused in one sentence") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  run(sweep, folder.path());
  const std::string newer = results_of(folder.path());
  for (const std::string_view columns : {",mfu", ",tflops_per_gpu,mfu"}) {
    std::string text = newer;
    text.erase(text.find(columns), columns.size());
    folder.file("results.csv", text);
    CHECK_THROWS_WITH(run(sweep, folder.path(), 1, true),
                      Contains("results.csv: has the columns of another version of lambcast"));
    CHECK(results_of(folder.path()) == text);
  }
}

TEST_CASE("sweep: the manifest names the axes, and a row its values on them") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(
      sixty_points, {parse_list("precision=fp16,bf16"), parse_list("zero_stage=0,1"),
                     parse_list("cluster.node.gpu_link=10GB/s,20GB/s"), parse_list("seq_len=128"),
                     parse_list("gpus=16"), parse_list("optimizer=lamb,adam")});
  run(sweep, folder.path());
  const auto manifest = nlohmann::json::parse(text_of(folder.path() / "manifest.json"));
  CHECK(manifest.at("axes") == nlohmann::json{{"cluster.node.gpu_link", {"10GB/s", "20GB/s"}},
                                              {"optimizer", {"lamb", "adam"}},
                                              {"precision", {"fp16", "bf16"}},
                                              {"zero_stage", {"0", "1"}}});
  const csv::Table table = csv::parse(results_of(folder.path()), "results.csv");
  std::set<std::string> coordinates;
  for (std::size_t row = 0; row < table.rows.size(); ++row)
    coordinates.insert(fmt::format("{} {} {} {}", table.text(row, "optimizer"),
                                   table.text(row, "precision"), table.text(row, "zero_stage"),
                                   table.text(row, "settings")));
  CHECK(table.rows.size() == 16);
  CHECK(coordinates.size() == 16);
}

TEST_CASE("sweep: a stop does not wait for a point that takes minutes") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  struct Gate {
    std::mutex mutex;
    std::condition_variable opened;
    bool open = false;
  };
  // The gate is shared with the abandoned thread, which may outlive this test.
  const auto gate = std::make_shared<Gate>();
  const RowOf row_of = [gate](const WhatIf& point, Catalog& catalog, CollectiveCosts& costs) {
    if (point.at("optimizer") == "onebit_lamb") {
      std::unique_lock lock(gate->mutex);
      gate->opened.wait(lock, [&] { return gate->open; });
    }
    return sweep_row(point, catalog, costs);
  };
  const auto begun = std::chrono::steady_clock::now();
  const auto stop = [&](std::size_t done, std::size_t) { return done < 20; };
  const SweepSummary summary =
      run_sweep(sweep, {.out = folder.path(), .jobs = 2, .progress = stop, .row_of = row_of});
  CHECK(std::chrono::steady_clock::now() - begun < std::chrono::seconds(5));
  // The 20 points of LAMB are on disk, although others in the last point's chunk were not done.
  CHECK(summary.written == 20);
  CHECK_FALSE(summary.complete);
  const std::string so_far = results_of(folder.path());
  {
    const std::lock_guard lock(gate->mutex);
    gate->open = true;
  }
  gate->opened.notify_all();
  CHECK(run(sweep, folder.path(), 1, true).written == 40);
  CHECK(results_of(folder.path()).starts_with(so_far));
}

TEST_CASE("sweep: a point that fails an internal check is a row with its reason") {
  Catalog catalog;
  CollectiveCosts costs;
  const TemporaryFolder folder;
  const RowOf broken = [](const WhatIf& point, Catalog& of_thread, CollectiveCosts& known) {
    return row_or_reason(point, [&]() -> SweepRow {
      if (point.at("gpus") == "8") throw InternalError("time 7 does not hold");
      return sweep_row(point, of_thread, known);
    });
  };
  CHECK(run_sweep(plan(sixty_points), {.out = folder.path(), .row_of = broken}).complete);
  const csv::Table table = csv::parse(results_of(folder.path()), "results.csv");
  REQUIRE(table.rows.size() == 60);
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (table.text(i, "gpus") == "8")
      CHECK(table.text(i, "status") ==
            "infeasible: internal error, please report it with its command: time 7 does not hold");
}

TEST_CASE("sweep: only one sweep at a time can use a folder") {
  const TemporaryFolder folder;
  const SweepPlan sweep = plan(sixty_points);
  std::string refused;
  const auto intrude = [&](std::size_t, std::size_t) {
    try {
      run(sweep, folder.path(), 1, true);
    } catch (const Error& error) {
      refused = error.what();
    }
    return true;
  };
  CHECK(run_sweep(sweep, {.out = folder.path(), .progress = intrude}).complete);
  CHECK_THAT(refused, Contains(": another sweep writes there now"));
}

TEST_CASE("sweep: a folder that cannot be used is an error of one sentence") {
  const TemporaryFolder folder;
  const std::string file = folder.file("file", "");
  CHECK_THROWS_WITH(run(plan(sixty_points), file + "/below"),
                    Contains("file/below: Not a directory"));
}

TEST_CASE("sweep: the shipped study is found, an unknown one is not") {
  const SweepPlan study = plan(study_text("bert_large"));
  CHECK(study.name == "bert-large-1bit");
  // Plain: 2 clusters x 2 optimizers x 4 batches x 6 GPU counts. Compressed: 2 x 2 x 4 x 6 x 8
  // freeze steps x 4 backends. Scan: 2 x 2 x 6 x 9 bandwidths.
  CHECK(study.points.size() == 96 + 3072 + 216);
  CHECK(study_text("bert_larg").empty());
}

}  // namespace
}  // namespace lambcast
