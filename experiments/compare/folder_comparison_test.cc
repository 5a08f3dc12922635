#include "experiments/compare/folder_comparison.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "experiments/output/interval_axis.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;

// Row with GPUs, optimizer, seconds and USD. A time of 0 marks a point that does not run.
struct Row {
  const char *gpus, *optimizer;
  int time_s;
  const char *cost, *speedup;
};

std::string folder_with(const TemporaryFolder& at, const std::string& name,
                        const std::vector<Row>& rows) {
  std::string text =
      "model,cluster,optimizer,gpus,run_time_s,run_time_low_s,run_time_high_s,cost_usd,"
      "speedup_vs_baseline,speedup_low,speedup_high,peak_bytes_per_gpu,status\n";
  for (const Row& row : rows) {
    const bool runs = row.time_s > 0;
    const std::string time = std::to_string(row.time_s), low = std::to_string(row.time_s / 2),
                      high = std::to_string(row.time_s * 2), speedup = row.speedup;
    text += std::string("bert,ring,") + row.optimizer + "," + row.gpus + "," +
            (runs ? time + "," + low + "," + high : ",,") + "," + row.cost + "," + speedup + "," +
            (speedup.empty() ? "," : "0.5,4") + "," + (runs ? "1e9,ok" : ",infeasible: memory") +
            "\n";
  }
  std::filesystem::create_directory(at.path() / name);
  at.file(name + "/results.csv", text);
  return (at.path() / name).string();
}

}  // namespace

TEST_CASE(
    "folder comparison: fastest, cheapest, gains of compression, and ratios of matching "
    "points") {
  const TemporaryFolder at;
  const std::string lamb = folder_with(at, "lamb",
                                       {{"8", "lamb", 100, "10", ""},
                                        {"8", "onebit_lamb", 80, "8", "1.25"},
                                        {"16", "lamb", 60, "12", ""},
                                        {"32", "lamb", 0, "", ""}});
  const std::string adam = folder_with(
      at, "adam",
      {{"8", "adam", 40, "4", ""}, {"16", "adam", 90, "18", ""}, {"64", "adam", 200, "80", ""}});
  const FolderComparison found = compare_folders({lamb, adam});
  REQUIRE(found.folders.size() == 2);
  CHECK(found.differ == std::vector<std::string>{"optimizer"});
  const ResultsFolder& first = found.folders[0];
  CHECK(first.points == 4);
  CHECK(first.ran == 3);
  CHECK(first.fastest->run_time_s == 60);
  CHECK(first.cheapest->cost_usd == 8);
  CHECK(first.pays_most->speedup->value == 1.25);
  CHECK_FALSE(first.against_first);
  const ResultsFolder& second = found.folders[1];
  CHECK_FALSE(second.pays_most);
  // At 8 GPUs 40 s are compared with 80 s, the faster point of the first folder; at 16 GPUs 90 s
  // with 60 s. At 64 GPUs there is no matching point.
  REQUIRE(second.against_first);
  CHECK(second.against_first->points == 2);
  CHECK(second.against_first->least == 0.5);
  CHECK(second.against_first->most == 1.5);
  CHECK(second.against_first->median == 1);

  const std::string table = folder_comparison_table(found);
  CHECK_THAT(table, Catch::StartsWith("Fastest: " + adam + ", 40 s (20 to 80 s) a run with "));
  CHECK_THAT(table,
             Contains("Cheapest: " + adam + ", 4.00 USD a run with optimizer adam, gpus 8."));
  CHECK_THAT(table, Contains("What differs: optimizer."));
  const auto json = nlohmann::json::parse(folder_comparison_json(found));
  CHECK(json.at("folders").at(1).at("against_first").at("median") == 1);
  CHECK(json.at("folders").at(0).at("fastest").at("settings").at("gpus") == "16");
  CHECK_THAT(folder_comparison_csv(found), Contains(lamb + ",4,3,60,8,1.25,,\n"));
}

TEST_CASE(
    "folder comparison: keys without a common value and folders without results are reported") {
  const TemporaryFolder at;
  const std::string small = folder_with(at, "small", {{"8", "lamb", 100, "", ""}});
  const std::string large = folder_with(at, "large", {{"64", "adam", 10, "", ""}});
  const std::string none = folder_with(at, "none", {{"8", "lamb", 0, "", ""}});
  // The folders differ in every key that varies, so any point matches any other.
  CHECK(compare_folders({small, large}).folders[1].against_first->median == 0.1);
  CHECK_THAT(folder_comparison_table(compare_folders({small, none})),
             Contains("have no points alike"));
  CHECK_THAT(folder_comparison_table(compare_folders({none, none + "/."})),
             Catch::StartsWith("No point of them runs."));
  CHECK(is_results_folder(small));
  CHECK_FALSE(is_results_folder(at.path().string()));
  CHECK_THROWS_WITH(compare_folders({small}), Contains("two or more"));
  CHECK_THROWS_WITH(compare_folders({small, small}), Contains("is named twice"));
  CHECK_THROWS_WITH(compare_folders({small, at.path().string()}), Contains("no results.csv in it"));
  at.file("large/results.csv", "model,status\nbert,ok\n");
  CHECK_THROWS_WITH(compare_folders({small, large}), Contains("run_time_s"));
}

TEST_CASE("interval axis: low, value and high are on one scale that starts at zero") {
  const std::string axis =
      interval_axis("run", {{"a", 25, 50, 100}, {"other", 0, 10, 20}}, "0 s", "100 s");
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < axis.size(); at = axis.find('\n', at) + 1)
    lines.push_back(axis.substr(at, axis.find('\n', at) - at));
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].size() == 80);
  CHECK(lines[1].size() == 80);
  // The axis has 74 columns for 0 to 100, so 25 is in column 18.
  CHECK(lines[1].find('[') == 6 + 18);
  CHECK(lines[1].find('o') == 6 + 37);
  CHECK(lines[1].find(']') == 6 + 73);
  CHECK(lines[2].find('[') == 6);
  CHECK(lines[2].find(']') == 6 + 15);
  CHECK(interval_axis("run", {}, "0", "1").empty());
}

}  // namespace lambcast
