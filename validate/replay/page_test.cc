#include "validate/replay/page.h"

#include <catch2/catch.hpp>

#include "experiments/report/gnuplot.h"
#include "experiments/report/search_path.h"
#include "sim/base/error.h"
#include "sim/base/temporary_folder.h"
#include "validate/replay/figures.h"
#include "validate/replay/made_up_validation.h"

namespace lambcast {
namespace {

using Catch::Matchers::Contains;
namespace fs = std::filesystem;

Validation both() { return {made_up_training(), made_up_collectives()}; }

TEST_CASE("page: verdict, limits, sums and both tables") {
  const std::string page = validation_page(both(), {});
  CHECK_THAT(page, Contains("<div class=verdict><p>Within limits"));
  CHECK_THAT(page, Contains("<td>box, below 64 KiB<td>✓ met<td><td class=n>2<td class=n>12.5%"
                            "<td class=n>20.0%<td class=n>12.5%<td class=n>30.0%"));
  CHECK_THAT(page, Contains("<tr><td>all<td class=n>2<td class=n>4<td class=n>12.5%<td class=n>"
                            "<td class=n>25.0%"));
  CHECK_THAT(
      page,
      Contains(
          "<td>wild<td>box<td>unseen<td>ms<td class=n>100.0"
          "<td class=n>92.0<td class=n>87.6 to 96.6<td class=n>-8.0%<td class=n>10.0%<td>✓ met"));
  CHECK_THAT(page,
             Contains("<td>seen<td>fitted<td class=n>12.5%<td class=n><td class=n><td class=n>12.5%"
                      "<td class=n>50.0%<td>box<td>InfiniBand<td>all_reduce"));
  CHECK_THAT(page, !Contains("MISSED"));
}

TEST_CASE("page: a missed limit shows in its row, by word and not by colour alone") {
  Validation validation = both();
  validation.collectives->limits[0].within = false;
  validation.collectives->within = false;
  validation.training->results.push_back(made_up_case("off", 1.5, false, 0.1));
  const std::string page = validation_page(validation, {});
  CHECK_THAT(page, Contains("PAST LIMITS"));
  CHECK_THAT(page, Contains("<tr class=missed><td>box, below 64 KiB"));
  CHECK_THAT(page, Contains("<tr class=missed><td>training, each figure: 2 within its own"));
  CHECK_THAT(page, Contains("+50.0%<td class=n>10.0%<td>✗ MISSED"));
}

TEST_CASE("page: data that was not replayed has no section, and no limit is stated") {
  const std::string training = validation_page({made_up_training(), std::nullopt}, {});
  CHECK_THAT(training, Contains("Training figures") && !Contains("Collective"));
  Validation log{std::nullopt, made_up_collectives()};
  log.collectives->limits.clear();
  const std::string page = validation_page(log, {});
  CHECK_THAT(page, Contains("None was asked for") && !Contains("Training figures"));
}

TEST_CASE("page: names from files are escaped") {
  Validation validation = both();
  validation.training->results[0].of.id = "<script>alert('x & y')</script>";
  validation.collectives->results[0].of.cluster = "\"><img src=x>";
  validation.collectives->limits[0].cluster = "<b>";
  const std::string page = validation_page(validation, {});
  CHECK_THAT(page, !Contains("<script>alert") && !Contains("<img") && !Contains("<b>"));
  CHECK_THAT(page, Contains("&lt;script&gt;alert(&#39;x &amp; y&#39;)&lt;/script&gt;"));
}

TEST_CASE("written: page, rows and pictures, the same bytes each time, hostile names drawn") {
  if (!report::gnuplot_found()) {
    WARN("skipped: gnuplot is not installed");
    return;
  }
  Validation validation = both();
  validation.training->results[0].of.id = "c'@x `touch ran` %s {/Bold}\"\\";
  validation.collectives->results[0].fabric = "n'`touch ran`";
  validation.collectives->results[0].of.cluster = "b'`touch ran`\\";
  const TemporaryFolder folder;
  const report::Paths paths = write_validation(validation, folder.path() / "deep" / "out");
  CHECK(paths.messages.empty());
  CHECK(paths.plots.size() == 6 * 4);
  for (const fs::path& plot : paths.plots) CHECK(fs::file_size(plot) > 100);
  const fs::path out = folder.path() / "deep" / "out";
  CHECK_FALSE(fs::exists(out / "plots" / "ran"));
  CHECK_THAT(text_of(out / "plots" / "training_error.svg"), Contains("touch ran"));
  CHECK_THAT(text_of(out / "training.csv"), Contains("100,102,") && Contains(",0.1,yes,"));
  CHECK_THAT(text_of(out / "collectives.csv"), Contains("seen.csv"));
  const std::string page = text_of(paths.page);
  CHECK_THAT(page, Contains("plots/collectives</span>") && !Contains(folder.path().string()));
  write_validation(validation, folder.path() / "again");
  CHECK(text_of(folder.path() / "again" / "report.html") == page);
}

TEST_CASE("written without gnuplot: the sources stay, and a message says what to install") {
  const TemporaryFolder folder;
  const report::SearchPath none("/nonexistent");
  const report::Paths paths = write_validation({made_up_training(), std::nullopt}, folder.path());
  CHECK_THAT(paths.messages.at(0), Contains("apt install gnuplot-nox"));
  CHECK(paths.plots.size() == 2 * 2);
  CHECK(fs::exists(folder.path() / "plots" / "training.gp"));
  CHECK_FALSE(fs::exists(folder.path() / "plots" / "training.svg"));
  CHECK_FALSE(fs::exists(folder.path() / "collectives.csv"));
  // The page draws its own pictures, so it is complete without gnuplot.
  CHECK_THAT(text_of(paths.page), !Contains("gnuplot is not installed") &&
                                      Contains("\"label\":\"measured step time (ms)\""));
}

TEST_CASE(
    "charts: the page has the charts of gnuplot, with hollow marks if fitted, and is "
    "harmless") {
  Validation validation = both();
  validation.training->results[0].of.id = "</script><img src=x>`";
  const std::string page = validation_page(validation, validation_figures(validation));
  CHECK_THAT(page, !Contains("<img") && Contains(R"(\u003c/script>\u003cimg src=x>`)"));
  CHECK_THAT(page, Contains(R"({"x":100,"y":92,"hollow":false,"text":"wild"})"));
  CHECK_THAT(page, Contains(R"({"x":100,"y":102,"hollow":true,)"));
  // Lines 10 % above and below, and the limit of a case as an area.
  CHECK_THAT(page, Contains(R"("kind":"dashes")") && Contains(R"("kind":"area")"));
  CHECK_THAT(page, Contains(R"({"place":65536,"text":"64 KiB"})"));
}

TEST_CASE("a folder that cannot be made is bad input") {
  const TemporaryFolder folder;
  folder.file("file", "");
  const fs::path below = folder.path() / "file" / "below";
  CHECK_THROWS_WITH(write_validation(both(), below), Contains("file/below: Not a directory"));
  try {
    write_validation(both(), below);
  } catch (const Error& error) {
    CHECK(error.code() == Exit::usage);
  }
}

}  // namespace
}  // namespace lambcast
