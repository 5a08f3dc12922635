#include "experiments/report/report.h"

#include <catch2/catch.hpp>
#include <fstream>
#include <map>

#include "experiments/report/gnuplot.h"
#include "experiments/report/search_path.h"
#include "experiments/report/synthetic_sweep.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::report;
namespace fs = std::filesystem;

namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Catch2 2 cannot skip a test: say why and pass.
#define NEED_GNUPLOT()                         \
  if (!gnuplot_found()) {                      \
    WARN("skipped: gnuplot is not installed"); \
    return;                                    \
  }

std::string small_results() {
  const SyntheticSweep sweep{.clusters = {{"box", 4, 10}},
                             .optimizers = {"lamb", "onebit_lamb"},
                             .gpus = {8, 16},
                             .global_batches = {8192}};
  return synthetic_header() + synthetic_rows(sweep);
}

// What stands between < and > in a page, without its script.
std::string tags_of(std::string page) {
  const std::size_t script = page.find("<script>");
  page.erase(script, page.find("</script>") - script);
  std::string tags;
  bool inside = false;
  for (const char c : page) {
    if (c == '<') inside = true;
    if (inside) tags += c;
    if (c == '>') inside = false;
  }
  return tags;
}

std::map<std::string, std::string> all_files(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      files[fs::relative(entry.path(), folder).string()] = file_text(entry.path());
    }
  }
  return files;
}

}  // namespace

TEST_CASE("a study becomes a page and pictures, the same bytes each time") {
  NEED_GNUPLOT()
  const ResultsFolder folder("study", synthetic_study());
  const Paths paths = write_report(folder.path);
  CHECK(paths.messages.empty());
  // Three general figures and three for each of two compressed optimizers, four files each.
  CHECK(paths.plots.size() == 9 * 4);
  for (const fs::path& plot : paths.plots) CHECK(fs::file_size(plot) > 100);
  const auto first = all_files(folder.path);
  CHECK(first.at("plots/throughput.png").substr(1, 3) == "PNG");
  CHECK(contains(first.at("plots/speedup_map_onebit_lamb.svg"), "break-even 1.0"));
  const std::string& page = first.at("report.html");
  for (const char* figure : {"throughput", "efficiency", "speedup_batch", "freeze_onebit_adam"}) {
    CHECK(contains(page, std::string(" id=\"") + figure + "-gnuplot_canvas\""));
  }
  CHECK(contains(page, "made-up numbers"));
  CHECK(contains(page, "https://example.org/a &lt;b&gt;"));

  const ResultsFolder again("study_again", synthetic_study());
  write_report(again.path);
  CHECK((all_files(again.path) == first));
}

TEST_CASE("the page loads nothing") {
  NEED_GNUPLOT()
  const ResultsFolder folder("offline", small_results());
  const std::string page = file_text(write_report(folder.path).page);
  const std::string tags = tags_of(page);
  CHECK_FALSE(contains(tags, "http:"));
  CHECK_FALSE(contains(tags, "https:"));
  CHECK_FALSE(contains(tags, "src="));
  CHECK_FALSE(contains(tags, "<link"));
  CHECK_FALSE(contains(page, "@import"));
  CHECK_FALSE(contains(page, folder.path.string()));
}

TEST_CASE("figures that are left out are told, and pictures of an earlier report go") {
  NEED_GNUPLOT()
  const ResultsFolder folder("left_out", small_results());
  fs::create_directories(folder.path / "plots");
  std::ofstream(folder.path / "plots" / "freeze_onebit_lamb.png") << "old";
  const Paths paths = write_report(folder.path);
  CHECK_FALSE(fs::exists(folder.path / "plots" / "freeze_onebit_lamb.png"));
  // One batch, one freeze share, one bandwidth: three figures less.
  CHECK(paths.messages.size() == 3);
  CHECK(paths.plots.size() == 3 * 4);
  CHECK(contains(file_text(paths.page), "Not drawn. It needs 1-bit LAMB at one GPU count"));
}

TEST_CASE("without gnuplot the page and the sources of the figures still come out") {
  const ResultsFolder folder("no_gnuplot", small_results());
  const SearchPath none("/nonexistent");
  const Paths paths = write_report(folder.path);
  CHECK(contains(paths.messages.at(0), "apt install gnuplot-nox"));
  CHECK(fs::exists(folder.path / "plots" / "throughput.gp"));
  CHECK(fs::exists(folder.path / "plots" / "throughput.dat"));
  CHECK_FALSE(fs::exists(folder.path / "plots" / "throughput.svg"));
  const std::string page = file_text(paths.page);
  CHECK(contains(page, "gnuplot is not installed"));
  CHECK(contains(page, "plots/throughput.gp and plots/throughput.dat"));
}

TEST_CASE("gnuplot failing is an error with its message") {
  const ResultsFolder folder("failing", small_results());
  const fs::path fake = folder.path / "gnuplot";
  std::ofstream(fake) << "#!/bin/sh\necho \"$2 line 3: no such terminal\" >&2\nexit 1\n";
  fs::permissions(fake, fs::perms::owner_all);
  const SearchPath first(folder.path.string() + ":/usr/bin:/bin");
  CHECK_THROWS_WITH(write_report(folder.path),
                    Catch::Contains("gnuplot failed on") &&
                        Catch::Contains("throughput.gp line 3: no such terminal"));
}

TEST_CASE("hostile names are drawn, not run") {
  NEED_GNUPLOT()
  SyntheticSweep sweep{.model = "m'`touch ran`\"\\",
                       .clusters = {{"c'@x %s {/Bold}\n", 4, 10}},
                       .optimizers = {"lamb", "onebit_'`touch ran`"},
                       .gpus = {8, 16},
                       .global_batches = {8192}};
  const ResultsFolder folder("hostile", synthetic_header() + synthetic_rows(sweep));
  const Paths paths = write_report(folder.path);
  CHECK_FALSE(fs::exists(folder.path / "plots" / "ran"));
  CHECK(contains(file_text(folder.path / "plots" / "throughput.svg"), "touch ran"));
}

TEST_CASE("bad results folders are refused by name") {
  const ResultsFolder folder("bad", "model,cluster\nbert,box\n");
  CHECK_THROWS_WITH(write_report(folder.path),
                    Catch::Contains("results.csv") && Catch::Contains("has no column"));
  CHECK_THROWS_WITH(write_report(folder.path / "absent"),
                    Catch::Contains("results.csv: cannot be read"));
  std::string results = small_results();
  const std::size_t gpus = results.find(",8,64,");
  results.replace(gpus, 3, ",x,");
  std::ofstream(folder.path / "results.csv") << results;
  CHECK_THROWS_WITH(write_report(folder.path),
                    Catch::Contains("results.csv:2: gpus") && Catch::Contains("not a finite"));
}

TEST_CASE("a manifest may be missing, and so may the columns that were added later") {
  std::string results = small_results(), older;
  for (std::size_t at = 0; at < results.size();) {  // without the last four fields of each line
    const std::size_t end = results.find('\n', at);
    std::size_t cut = end;
    for (int i = 0; i < 4; ++i) cut = results.rfind(',', cut - 1);
    older += results.substr(at, cut - at) + '\n';
    at = end + 1;
  }
  const ResultsFolder folder("older", older);
  fs::remove(folder.path / "manifest.json");
  const SearchPath none("/nonexistent");
  const Paths paths = write_report(folder.path);
  CHECK(contains(file_text(paths.page), "There is no manifest.json beside results.csv."));
  CHECK(contains(file_text(folder.path / "plots" / "throughput.dat"), "# box\n"));
}
