// Compares the shipped studies with their expected.csv, which hold part of their results.
// bert_large: the largest batch, the GPUs of one and of eight nodes, one freeze step, every
// bandwidth. exchanges: 64 GPUs.
//
// If a change of the model is meant to change these figures, rewrite the files and give the reason
// in the commit:   build/experiments/experiments_test "[write-expected]"
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>

#include "experiments/sweep/result_row.h"
#include "experiments/sweep/sweep.h"
#include "sim/base/csv.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

// Columns that identify a row, then the columns that are compared.
const std::vector<std::string> keys{"cluster",    "optimizer", "backend",
                                    "cuda_aware", "gpus",      "nic_bandwidth_Gbps"};
const std::vector<std::string> figures{"grad_accum",
                                       "steps",
                                       "freeze_step",
                                       "uniform_step_time_us",
                                       "warmup_step_time_us",
                                       "compression_step_time_us",
                                       "compression_exposed_comm_us",
                                       "run_time_s",
                                       "run_wire_bytes_per_gpu",
                                       "volume_reduction",
                                       "speedup_vs_baseline",
                                       "peak_bytes_per_gpu",
                                       "status"};

struct Study {
  const char* name;
  std::vector<const char*> chosen;
  std::vector<std::string> keys;
};

const Study studies[] = {
    {"bert_large", {"global_batch=65536", "gpus=8,64", "freeze_step=16.7%"}, {}},
    {"exchanges", {"gpus=64"}, {"kernels", "settings"}},
};

std::string expected_of(const Study& study) {
  return fmt::format("{}/{}/expected.csv", LAMBCAST_STUDIES, study.name);
}

std::vector<std::string> columns_of(const Study& study) {
  std::vector<std::string> columns = keys;
  columns.insert(columns.end(), study.keys.begin(), study.keys.end());
  columns.insert(columns.end(), figures.begin(), figures.end());
  return columns;
}

csv::Table results_of(const Study& study) {
  std::vector<Axis> axes;
  for (const char* list : study.chosen) axes.push_back(parse_list(list));
  const SweepPlan plan = plan_sweep(study_text(study.name), study.name, axes);
  Catalog catalog;
  CollectiveCosts costs;
  std::string text = csv::row(result_columns()) + "\n";
  for (const WhatIf& point : plan.points) text += sweep_row(point, catalog, costs).text + "\n";
  return csv::parse(text, "study");
}

std::string name_of_row(const csv::Table& table, std::size_t row) {
  std::string name;
  for (const std::string& key : keys) name += fmt::format("{} ", table.text(row, key));
  return name;
}

// Returns the difference between two cells; empty if words are equal and numbers agree to a
// relative 1e-9.
std::string difference(const std::string& expected, const std::string& got) {
  if (expected == got) return {};
  char *end_expected = nullptr, *end_got = nullptr;
  const double a = std::strtod(expected.c_str(), &end_expected);
  const double b = std::strtod(got.c_str(), &end_got);
  const bool numbers = !expected.empty() && !got.empty() && *end_expected == 0 && *end_got == 0;
  if (numbers && std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b))) return {};
  const std::string percent =
      numbers && a != 0 ? fmt::format(" ({:+.3g} %)", (b / a - 1) * 100) : "";
  return fmt::format("expected {}, got {}{}", expected, got, percent);
}

TEST_CASE("golden: the results of the studies are unchanged") {
  for (const Study& study : studies) {
    const csv::Table expected = csv::parse(text_of(expected_of(study)), expected_of(study));
    const csv::Table got = results_of(study);
    const std::vector<std::string> columns = columns_of(study);
    REQUIRE(expected.header == columns);
    REQUIRE(expected.rows.size() == got.rows.size());
    std::string differences;
    int count = 0;
    for (std::size_t row = 0; row < got.rows.size(); ++row) {
      for (const std::string& column : columns) {
        const std::string what = difference(expected.text(row, column), got.text(row, column));
        if (!what.empty() && ++count <= 20)
          differences += fmt::format("{}{}: {}\n", name_of_row(got, row), column, what);
      }
    }
    INFO(study.name << ": " << count << " differences, of which the first:\n" << differences);
    CHECK(count == 0);
  }
}

TEST_CASE("golden: a difference of 1e-8, a changed word and a lost number are detected") {
  CHECK(difference("ok", "ok").empty());
  CHECK(difference("1000000", "1000000.0001").empty());
  CHECK(difference("1000000", "1000000.01") == "expected 1000000, got 1000000.01 (+1e-06 %)");
  CHECK_FALSE(difference("ok", "infeasible").empty());
  CHECK_FALSE(difference("1", "").empty());
  CHECK_FALSE(difference("", "1").empty());
  CHECK_FALSE(difference("1", "nan").empty());
}

TEST_CASE("golden: write the current results of the studies", "[.][write-expected]") {
  for (const Study& study : studies) {
    const csv::Table got = results_of(study);
    const std::vector<std::string> columns = columns_of(study);
    std::ofstream file(expected_of(study), std::ios::binary);
    file << csv::row(columns) << "\n";
    for (std::size_t row = 0; row < got.rows.size(); ++row) {
      std::vector<std::string> fields;
      for (const std::string& column : columns) fields.push_back(got.text(row, column));
      file << csv::row(fields) << "\n";
    }
    REQUIRE(file.flush());
  }
}

}  // namespace
}  // namespace lambcast
