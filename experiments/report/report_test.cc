#include "experiments/report/report.h"

#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <fstream>
#include <map>

#include "experiments/report/contains_test.h"
#include "experiments/report/gnuplot.h"
#include "experiments/report/search_path.h"
#include "experiments/report/synthetic_sweep.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::report;
namespace fs = std::filesystem;

namespace {

// Catch2 2 cannot skip a test, so the macro gives the reason and passes.
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

Paths report_of(const fs::path& folder, const DrawingLimits& limits = {}) {
  return write_report(read_results(folder), folder, limits);
}

// A shell script named gnuplot, first in PATH while the object lives.
struct FakeGnuplot {
  FakeGnuplot(const fs::path& folder, const std::string& script)
      : path(folder.string() + ":/usr/bin:/bin") {
    const fs::path fake = folder / "gnuplot";
    std::ofstream(fake) << "#!/bin/sh\n" << script << "\n";
    fs::permissions(fake, fs::perms::owner_all);
  }
  SearchPath path;
};

// Returns the tags of a page, without the contents of its scripts.
std::string tags_of(std::string page) {
  for (std::size_t at = 0; (at = page.find("<script", at)) != std::string::npos;) {
    at = page.find('>', at) + 1;
    page.erase(at, page.find("</script>", at) - at);
  }
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
  const Paths paths = report_of(folder.path);
  CHECK(paths.messages.empty());
  // There are three general figures and three for each of two compressed optimizers, with four
  // files each.
  CHECK(paths.plots.size() == 9 * 4);
  for (const fs::path& plot : paths.plots) CHECK(fs::file_size(plot) > 100);
  const auto first = all_files(folder.path);
  CHECK(first.at("plots/throughput.png").substr(1, 3) == "PNG");
  CHECK(contains(first.at("plots/speedup_map_onebit_lamb.svg"), "break-even 1.0"));
  const std::string& page = first.at("report.html");
  CHECK(contains(page, "throughput.svg, throughput.png, efficiency.svg"));
  CHECK(contains(page, "made-up numbers"));
  CHECK(contains(page, "https://example.org/a &lt;b&gt;"));

  const ResultsFolder again("study_again", synthetic_study());
  report_of(again.path);
  CHECK((all_files(again.path) == first));
}

TEST_CASE("the page loads nothing") {
  NEED_GNUPLOT()
  const ResultsFolder folder("offline", small_results());
  const std::string page = file_text(report_of(folder.path).page);
  const std::string tags = tags_of(page);
  CHECK_FALSE(contains(tags, "http:"));
  CHECK_FALSE(contains(tags, "https:"));
  CHECK_FALSE(contains(tags, "src="));
  CHECK_FALSE(contains(tags, "<link"));
  CHECK_FALSE(contains(page, "@import"));
  CHECK_FALSE(contains(page, folder.path.string()));
}

TEST_CASE("figures that are left out are reported, and pictures of an earlier report are removed") {
  NEED_GNUPLOT()
  const ResultsFolder folder("left_out", small_results());
  fs::create_directories(folder.path / "plots");
  std::ofstream(folder.path / "plots" / "freeze_onebit_lamb.png") << "old";
  const Paths paths = report_of(folder.path);
  CHECK_FALSE(fs::exists(folder.path / "plots" / "freeze_onebit_lamb.png"));
  // With one batch, one freeze share and one bandwidth, three figures are left out.
  CHECK(paths.messages.size() == 3);
  CHECK(paths.plots.size() == 3 * 4);
  CHECK_FALSE(contains(file_text(paths.page), "It needs 1-bit LAMB at one GPU count"));
  CHECK(contains(paths.messages[2], "It needs 1-bit LAMB at one GPU count"));
}

TEST_CASE("without gnuplot the page and the sources of the figures are still written") {
  const ResultsFolder folder("no_gnuplot", small_results());
  const SearchPath none("/nonexistent");
  const Paths paths = report_of(folder.path);
  CHECK(contains(paths.messages.at(0), "apt install gnuplot-nox"));
  CHECK(fs::exists(folder.path / "plots" / "throughput.gp"));
  CHECK(fs::exists(folder.path / "plots" / "throughput.dat"));
  CHECK_FALSE(fs::exists(folder.path / "plots" / "throughput.svg"));
  // The page draws its own pictures, so it is complete without gnuplot.
  const std::string page = file_text(paths.page);
  CHECK_FALSE(contains(page, "gnuplot is not installed"));
  CHECK(contains(page, "id=rows-data"));
  CHECK(contains(page, "class=numbers"));
}

TEST_CASE("if gnuplot fails for a picture, the report is complete and the message is shown") {
  const ResultsFolder folder("failing", small_results());
  // One picture fails half-way, with an escape byte in the message.
  const FakeGnuplot fake(folder.path,
                         "n=${2%.gp}; echo svg >$n.svg; echo png >$n.png\n"
                         "case $n in throughput) printf '%s line 3:\\033[31m no such terminal\\n' "
                         "$2 >&2; exit 1; esac");
  const Paths paths = report_of(folder.path);
  REQUIRE(paths.messages.size() == 4);
  CHECK(contains(paths.messages[0], "no picture 'Throughput against GPUs': gnuplot failed on"));
  CHECK(contains(paths.messages[0], "throughput.gp line 3: [31m no such terminal"));
  CHECK_FALSE(fs::exists(folder.path / "plots" / "throughput.svg"));
  CHECK(fs::exists(folder.path / "plots" / "efficiency.svg"));
  CHECK(contains(file_text(paths.page), "<span class=file>efficiency.svg, "));
}

TEST_CASE("a gnuplot that hangs is stopped, and not started again") {
  const ResultsFolder folder("hanging", small_results());
  const FakeGnuplot fake(folder.path, "trap '' TERM INT; echo >>../tried; exec sleep 60");
  const auto start = std::chrono::steady_clock::now();
  const Paths paths = report_of(folder.path, {.picture_s = 0.3});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(file_text(folder.path / "tried") == "\n");
  CHECK(contains(paths.messages.at(0), "gnuplot did not end within 0.3 s on"));
  CHECK(contains(file_text(paths.page), "id=rows-data"));
}

TEST_CASE("a stopped drawing does not wait for gnuplot, and gives no page") {
  const ResultsFolder folder("stopped", small_results());
  const FakeGnuplot fake(folder.path, "trap '' TERM INT; exec sleep 60");
  const auto start = std::chrono::steady_clock::now();
  const Paths paths = report_of(folder.path, {.stopped = [] { return true; }});
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(20));
  CHECK(paths.stopped);
  CHECK_FALSE(fs::exists(folder.path / "report.html"));
}

TEST_CASE("a page of another program is not overwritten, one of an earlier report is") {
  const ResultsFolder folder("foreign", small_results());
  const SearchPath none("/nonexistent");
  const fs::path page = folder.path / "report.html";
  std::ofstream(page) << "<html><title>my thesis</title>";
  CHECK_THROWS_WITH(report_of(folder.path),
                    Catch::Contains("report.html: is not a page of lambcast"));
  CHECK(file_text(page) == "<html><title>my thesis</title>");
  CHECK_FALSE(fs::exists(folder.path / "plots"));
  fs::remove(page);
  report_of(folder.path);
  CHECK_NOTHROW(report_of(folder.path));
  CHECK_FALSE(fs::exists(folder.path / "report.html.part"));
}

TEST_CASE("links out of a results folder are neither followed nor removed") {
  const ResultsFolder outside("outside", small_results());
  for (const char* name :
       {"plots", "report.html", "manifest.json", "results.csv", "results.sums"}) {
    const ResultsFolder folder("links", small_results());
    fs::remove_all(folder.path / name);
    const fs::path to = outside.path / (std::string_view(name) == "plots" ? "" : "results.csv");
    fs::create_symlink(to, folder.path / name);
    CHECK_THROWS_WITH((read_results(folder.path), report_of(folder.path)),
                      Catch::Contains(std::string(name) + ": is a symbolic link, which is not"));
    CHECK(fs::is_symlink(folder.path / name));
  }
  CHECK_FALSE(fs::exists(outside.path / "report.html"));
  CHECK(std::distance(fs::directory_iterator(outside.path), fs::directory_iterator()) == 2);
}

TEST_CASE("a link in place of a plot is replaced, and its target is kept") {
  NEED_GNUPLOT()
  const ResultsFolder folder("plot links", small_results());
  const ResultsFolder outside("outside plots", small_results());
  const fs::path kept = outside.path / "results.csv";
  const std::string before = file_text(kept);
  report_of(folder.path);
  std::vector<fs::path> plots;
  for (const auto& entry : fs::directory_iterator(folder.path / "plots"))
    plots.push_back(entry.path());
  REQUIRE_FALSE(plots.empty());
  for (const fs::path& plot : plots) {
    fs::remove(plot);
    fs::create_symlink(kept, plot);
  }
  report_of(folder.path);
  for (const fs::path& plot : plots) {
    INFO(plot);
    CHECK_FALSE(fs::is_symlink(plot));
  }
  CHECK(file_text(kept) == before);
}

TEST_CASE("results and manifests that are pipes are refused, not waited for") {
  const ResultsFolder folder("pipe", small_results());
  fs::remove(folder.path / "manifest.json");
  REQUIRE(mkfifo((folder.path / "manifest.json").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(report_of(folder.path),
                    Catch::Contains("manifest.json: is not a regular file"));
  fs::remove(folder.path / "results.csv");
  REQUIRE(mkfifo((folder.path / "results.csv").c_str(), 0600) == 0);
  CHECK_THROWS_WITH(report_of(folder.path),
                    Catch::Contains("results.csv: cannot be read: it is no"));
}

TEST_CASE("hostile names are drawn, not run") {
  NEED_GNUPLOT()
  SyntheticSweep sweep{.model = "m'`touch ran`\"\\",
                       .clusters = {{"c'@x %s {/Bold}\n", 4, 10}},
                       .optimizers = {"lamb", "onebit_'`touch ran`"},
                       .gpus = {8, 16},
                       .global_batches = {8192}};
  const ResultsFolder folder("hostile", synthetic_header() + synthetic_rows(sweep));
  const Paths paths = report_of(folder.path);
  CHECK_FALSE(fs::exists(folder.path / "plots" / "ran"));
  CHECK(contains(file_text(folder.path / "plots" / "throughput.svg"), "touch ran"));
}

TEST_CASE("names that gnuplot and SVG cannot take unchanged are drawn") {
  NEED_GNUPLOT()
  SyntheticSweep sweep{.model = "m'''n]]>o",
                       .clusters = {{"'''c\x1b[31m\xff", 4, 10}},
                       .optimizers = {"lamb", "onebit_''']]>"},
                       .gpus = {8, 16},
                       .global_batches = {8192}};
  const ResultsFolder folder("quotes", synthetic_header() + synthetic_rows(sweep));
  const Paths paths = report_of(folder.path);
  for (const std::string& message : paths.messages) CHECK_FALSE(contains(message, "no picture"));
  const std::string svg = file_text(folder.path / "plots" / "throughput.svg");
  CHECK(contains(svg, "m'''n]] >o"));
  CHECK_FALSE(contains(svg, "]]>"));
  CHECK(contains(svg, "'''c [31m\uFFFD"));
  CHECK_FALSE(contains(file_text(paths.page), "\x1b"));
}

TEST_CASE("bad results folders are refused by name") {
  const ResultsFolder folder("bad", "model,cluster\nbert,box\n");
  CHECK_THROWS_WITH(report_of(folder.path),
                    Catch::Contains("results.csv") && Catch::Contains("has no column"));
  CHECK_THROWS_WITH(report_of(folder.path / "absent"),
                    Catch::Contains("results.csv: cannot be read"));
  std::string results = small_results();
  const std::size_t gpus = results.find(",8,64,");
  results.replace(gpus, 3, ",x,");
  std::ofstream(folder.path / "results.csv") << results;
  CHECK_THROWS_WITH(report_of(folder.path),
                    Catch::Contains("results.csv:2: gpus") && Catch::Contains("not a finite"));
}

TEST_CASE("a manifest may be missing, and so may the columns that were added later") {
  std::string results = small_results(), older;
  for (std::size_t at = 0; at < results.size();) {  // drop the last four fields of each line
    const std::size_t end = results.find('\n', at);
    std::size_t cut = end;
    for (int i = 0; i < 4; ++i) cut = results.rfind(',', cut - 1);
    older += results.substr(at, cut - at) + '\n';
    at = end + 1;
  }
  const ResultsFolder folder("older", older);
  fs::remove(folder.path / "manifest.json");
  const SearchPath none("/nonexistent");
  const Paths paths = report_of(folder.path);
  CHECK(contains(file_text(paths.page), "There is not a manifest.json beside results.csv."));
  CHECK(contains(file_text(folder.path / "plots" / "throughput.dat"), "# box\n"));
}
