// Tests sweeps that resume after their files were changed or damaged.
#include "experiments/sweep/sweep_folder.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "experiments/output/forecast_output.h"
#include "experiments/sweep/sweep_case.h"
#include "models/shape/load.h"
#include "sim/base/json.h"
#include "sim/base/temporary_folder.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

// A folder with the files that a sweep of 40 points uses, and its results.
struct Case {
  TemporaryFolder folder;
  std::string cluster = folder.file("mine.toml", cluster_text("paper-eth40-v100"));
  std::string model = folder.file("bert.toml", std::string(model_preset_text("bert-base")));
  std::string device = folder.file("gpu.toml", device_text("v100-16g"));
  std::string config =
      folder.file("ds.json", R"({"optimizer": {"type": "Lamb"}, "fp16": {"enabled": true}})");
  SweepPlan sweep = plan(fmt::format(
      "[base]\ncluster = '{}'\nmodel = '{}'\ndevice = '{}'\nconfig = '{}'\nmicro_batch = 1\n"
      "[grid]\ngpus = \"1:40:1\"",
      cluster, model, device, config));
  fs::path out = folder.path() / "out";
  std::vector<std::string> notes;

  SweepSummary run(bool resume = false) {
    notes.clear();
    return run_sweep(sweep, {.out = out, .resume = resume, .note = [&](const std::string& note) {
                               notes.push_back(note);
                             }});
  }
  std::string results() const { return text_of(out / "results.csv"); }
  void damage(const std::string& text) { std::ofstream(out / "results.csv") << text; }
};

TEST_CASE("sweep folder: a file that changed is named, and the sweep does not resume") {
  Case test;
  test.run();
  const std::string before = test.results();
  const std::pair<std::string, std::string> files[] = {{test.cluster, "cluster " + test.cluster},
                                                       {test.model, "model " + test.model},
                                                       {test.device, "device " + test.device},
                                                       {test.config, "config " + test.config}};
  for (const auto& [file, named] : files) {
    const std::string text = text_of(file);
    std::ofstream(file, std::ios::app) << "\n";
    CHECK_THROWS_WITH(
        test.run(true),
        Contains("/out: " + named +
                 " changed since the sweep began: restore it to go on; choose another"));
    std::ofstream(file) << text;
  }
  CHECK_NOTHROW(test.run(true));
  CHECK(test.results() == before);
}

TEST_CASE("sweep folder: another version is refused, and a manifest without one") {
  Case test;
  test.run();
  const std::string text = text_of(test.out / "manifest.json");
  Json manifest = Json::parse(text);
  CHECK(manifest.at("inputs").size() == 4);
  manifest["version"] = "0.0.1";
  std::ofstream(test.out / "manifest.json") << manifest;
  CHECK_THROWS_WITH(test.run(true),
                    Contains(fmt::format("was begun by lambcast 0.0.1, this is {}", tool_version)));
  for (const char* damaged :
       {"", "{", "[]", "3", R"({"tool": "lambcast"})",
        R"({"tool": "lambcast", "version": 1, "sweep_hash": []})", "\xff\xfe{}"}) {
    std::ofstream(test.out / "manifest.json") << damaged;
    CHECK_THROWS_WITH(test.run(true),
                      Contains("manifest.json: is missing or damaged") && !Contains("json."));
  }
  manifest = Json::parse(text);
  manifest["inputs"] = 3;
  std::ofstream(test.out / "manifest.json") << manifest;
  CHECK_THROWS_WITH(test.run(true), Contains("changed since the sweep began"));
  fs::remove(test.out / "manifest.json");
  CHECK_THROWS_WITH(test.run(true), Contains("manifest.json: is missing or damaged"));
}

std::ptrdiff_t notes_of_damage(const Case& test) {
  return std::count_if(test.notes.begin(), test.notes.end(), [](const std::string& note) {
    return note.find("does not match its checksum") != std::string::npos;
  });
}

TEST_CASE("sweep folder: rows that differ from what was written are computed again") {
  Case test;
  test.run();
  const std::string whole = test.results();
  std::vector<std::size_t> lines{0};  // start of each line
  while (lines.back() < whole.size()) lines.push_back(whole.find('\n', lines.back()) + 1);
  const auto without = [&](std::size_t row) {
    return whole.substr(0, lines[row]) + whole.substr(lines[row + 1]);
  };
  std::string altered = whole;
  altered[whole.find(",1,", lines[12]) + 1] = '2';
  const std::string shorter = whole.substr(0, lines[12] + 30) + whole.substr(lines[13] - 1);
  const std::string swapped =
      whole.substr(0, lines[12]) + whole.substr(lines[13], lines[14] - lines[13]) +
      whole.substr(lines[12], lines[13] - lines[12]) + whole.substr(lines[14]);
  const std::string binary = whole.substr(0, lines[12]) + std::string(5, '\0') + "\n";
  struct Row {
    std::string text;
    std::size_t again;
  };
  const Row rows[] = {{without(12), 28}, {altered, 29}, {shorter, 29},
                      {swapped, 29},     {binary, 1},   {without(12) + "1,2", 28}};
  for (const Row& row : rows) {
    test.damage(row.text);
    const SweepSummary summary = test.run(true);
    CHECK(summary.complete);
    CHECK(summary.written == 29);
    CHECK(test.results() == whole);
    REQUIRE_FALSE(test.notes.empty());
    CHECK(notes_of_damage(test) == 1);
    CHECK_THAT(test.notes[0],
               Contains(fmt::format("results.csv: row 12 does not match its checksum: "
                                    "{} rows are computed again",
                                    row.again)));
  }
  // Rows missing at the end are no damage: the sweep was stopped there.
  test.damage(whole.substr(0, lines[20]));
  CHECK(test.run(true).written == 21);
  CHECK(notes_of_damage(test) == 0);
  CHECK(test.results() == whole);
}

TEST_CASE("sweep folder: with lost or damaged sums no unchecked row is kept") {
  Case test;
  test.run();
  const std::string whole = test.results(), sums = text_of(test.out / "results.sums");
  CHECK(sums.size() == 40 * 19);
  std::string altered = sums;
  altered[3 * 19 + 2] ^= 1;
  for (const std::string& damaged : {std::string(), sums.substr(0, 100), altered, sums.substr(1)}) {
    std::ofstream(test.out / "results.sums") << damaged;
    CHECK(test.run(true).complete);
    CHECK(test.results() == whole);
    CHECK(text_of(test.out / "results.sums") == sums);
  }
  fs::remove(test.out / "results.sums");
  CHECK_THROWS_WITH(test.run(true), Contains("results.sums: is missing"));
  CHECK(test.results() == whole);
}

TEST_CASE("sweep folder: infeasible rows are counted without reading them again") {
  Case test;
  test.sweep = plan(
      "[base]\nmodel = \"bert-large\"\ncluster = \"paper-eth40-v100\"\ngpus = 8\n"
      "optimizer = \"lamb\"\nmicro_batch = 1\n[grid]\nseq_len = [128, 1024, 256]");
  CHECK(test.run().infeasible == 1);
  CHECK(test.run(true).infeasible == 1);
}

TEST_CASE("sweep folder: files of other programs stay") {
  Case test;
  fs::create_directories(test.out);
  for (const char* foreign : {"{\"name\": \"an app\"}", "not even JSON", "[1]"}) {
    std::ofstream(test.out / "manifest.json") << foreign;
    CHECK_THROWS_WITH(test.run(), Contains("manifest.json: is not a manifest of lambcast"));
    CHECK(text_of(test.out / "manifest.json") == foreign);
  }
  fs::remove(test.out / "manifest.json");
  std::ofstream(test.out / "results.sums") << "mine";
  CHECK_THROWS_WITH(test.run(),
                    Contains("results.sums: exists, but the folder has no manifest.json"));
  CHECK(text_of(test.out / "results.sums") == "mine");
  fs::remove(test.out / "results.sums");
  CHECK_NOTHROW(test.run());
}

TEST_CASE("sweep folder: a pipe in place of any of its files is refused") {
  for (const char* name : {"results.csv", "results.sums", "manifest.json"}) {
    Case test;
    fs::create_directories(test.out);
    REQUIRE(mkfifo((test.out / name).c_str(), 0600) == 0);
    for (const bool resume : {false, true})
      CHECK_THROWS_WITH(test.run(resume), Contains(fmt::format("{}: is not a regular file", name)));
  }
}

TEST_CASE("sweep folder: a link out of the folder is not written through") {
  for (const char* name : {"results.csv", "results.sums", "manifest.json"}) {
    for (const bool whole : {false, true}) {
      Case test;
      // The folder has the results of another sweep, or is empty. The link may lead to a matching
      // copy.
      if (whole)
        test.run();
      else
        fs::create_directories(test.out);
      const std::string kept = whole ? text_of(test.out / name) : "private";
      const fs::path outside = test.folder.file("outside", kept);
      fs::remove(test.out / name);
      fs::create_symlink(outside, test.out / name);
      INFO(name << (whole ? " of a sweep" : " alone"));
      for (const bool resume : {false, true})
        CHECK_THROWS_WITH(test.run(resume),
                          Contains(": is a symbolic link, which is not followed"));
      CHECK(text_of(outside) == kept);
      CHECK(fs::is_symlink(test.out / name));
    }
  }
}

TEST_CASE("sweep folder: names of any bytes can be in the manifest") {
  Case test;
  test.sweep.name = "caf\xe9";
  CHECK_NOTHROW(test.run());
  CHECK_NOTHROW(Json::parse(text_of(test.out / "manifest.json")));
}

}  // namespace
}  // namespace lambcast
