#include "experiments/sweep/result_parts.h"

#include <catch2/catch.hpp>
#include <map>

#include "experiments/sweep/result_row.h"
#include "experiments/sweep/sweep_case.h"
#include "sim/base/csv.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// A sweep with all kinds of steps, a pipeline with a bubble, a point that cannot run, and a name
// with a comma.
constexpr std::string_view kinds_of_steps = R"(
[base]
model = "bert-large"
cluster = "paper-eth40-v100"
gpus = 16
micro_batch = 16
steps = 400000
"cluster.name" = "ours, new"
[[variant]]
optimizer = "lamb"
[[variant]]
optimizer = "onebit_lamb"
freeze_step = "20%"
[[variant]]
optimizer = "zero_one_adam"
[[variant]]
optimizer = "lamb"
seq_len = 4096
[[variant]]
optimizer = "lamb"
pp = 4
grad_accum = 8
)";

TEST_CASE("parts: a row's parts add up to the step of every kind, with the keys of the row") {
  const TemporaryFolder folder;
  run_sweep(plan(kinds_of_steps), {.out = folder.path()});
  CHECK(write_parts(folder.path()) == folder.path() / "parts.csv");
  const csv::Table results = csv::parse(text_of(folder.path() / "results.csv"), "results.csv");
  const csv::Table parts = csv::parse(text_of(folder.path() / "parts.csv"), "parts.csv");
  REQUIRE(results.rows.size() == 5);
  // All columns in their order, without the keys that are empty in every row.
  std::vector<std::string> expected;
  for (const std::string& column : part_columns()) {
    const bool is_key = std::ranges::find(results.header, column) != results.header.end();
    bool has_value = !is_key;
    for (std::size_t row = 0; is_key && row < results.rows.size(); ++row)
      has_value = has_value || !results.text(row, column).empty();
    if (has_value) expected.push_back(column);
  }
  CHECK(parts.header == expected);
  CHECK(std::ranges::find(expected, "freeze_step") != expected.end());
  std::map<std::pair<std::size_t, std::string>, double> sums;
  for (std::size_t i = 0; i < parts.rows.size(); ++i) {
    const auto row = static_cast<std::size_t>(parts.number(i, "row")) - 1;
    REQUIRE(row < results.rows.size());
    const std::string& kind = parts.text(i, "stage");
    for (const char* key : {"model", "cluster", "optimizer", "gpus", "global_batch", "freeze_step",
                            "zero_stage", "precision", "settings"})
      CHECK(parts.text(i, key) == results.text(row, key));
    CHECK(parts.text(i, "steps_of_stage") == results.text(row, kind + "_steps"));
    CHECK(parts.text(i, "time_us") ==
          results.text(row, fmt::format("{}_{}_us", kind, parts.text(i, "part"))));
    sums[{row, kind}] += parts.number(i, "time_us");
  }
  std::size_t kinds = 0;
  for (std::size_t row = 0; row < results.rows.size(); ++row)
    for (const char* kind : {"uniform", "warmup", "compression", "silent"}) {
      const std::string step_time = fmt::format("{}_step_time_us", kind);
      if (results.text(row, step_time).empty()) continue;
      ++kinds;
      INFO("row " << row + 1 << ", " << kind);
      CHECK(sums.at({row, kind}) == Approx(results.number(row, step_time)).epsilon(1e-9));
    }
  CHECK(kinds == sums.size());
  CHECK(parts.rows.size() == 7 * kinds);
  CHECK(kinds == 7);  // uniform twice, two of 1-bit LAMB, three of 0/1 Adam
  CHECK(sums.count({3, "uniform"}) == 0);
  CHECK(results.number(4, "uniform_bubble_us") > 0);
}

TEST_CASE("parts: files of other programs are neither read nor overwritten") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(write_parts(folder.path()), Contains("results.csv: cannot be read"));
  run_sweep(plan(kinds_of_steps), {.out = folder.path()});
  folder.file("parts.csv", "part,price\nbolt,1\n");
  CHECK_THROWS_WITH(write_parts(folder.path()),
                    Contains("parts.csv: was not written by lambcast, so it is not overwritten"));
  CHECK(text_of(folder.path() / "parts.csv") == "part,price\nbolt,1\n");
  std::filesystem::remove(folder.path() / "parts.csv");
  write_parts(folder.path());
  const std::string once = text_of(folder.path() / "parts.csv");
  write_parts(folder.path());
  CHECK(text_of(folder.path() / "parts.csv") == once);
  folder.file("results.csv", "model,cluster\nbert,here\n");
  CHECK_THROWS_WITH(write_parts(folder.path()), Contains("optimizer"));
  CHECK(text_of(folder.path() / "parts.csv") == once);
}

}  // namespace
}  // namespace lambcast
