#include "experiments/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <sstream>

#include "experiments/report/contains_test.h"
#include "experiments/report/html.h"
#include "experiments/report/synthetic_sweep.h"
#include "sim/base/error.h"

using namespace lambcast;
using namespace lambcast::report;

namespace {

std::string page_of(const std::string& results) {
  return page_html(results_of(results), {"<p>provenance</p>", {}, {}});
}

SyntheticSweep small_sweep() {
  return {.clusters = {{"box", 4, 10}},
          .optimizers = {"lamb", "onebit_lamb"},
          .gpus = {8, 16},
          .global_batches = {512, 8192}};
}

}  // namespace

TEST_CASE("everything from the results is escaped") {
  SyntheticSweep sweep = small_sweep();
  sweep.model = "<script>alert('x & y')</script>";
  sweep.clusters[0].name = "\"><img src=x>";
  const std::string page = page_of(synthetic_header() + synthetic_rows(sweep));
  CHECK_FALSE(contains(page, "<script>alert"));
  CHECK_FALSE(contains(page, "<img"));
  // Names appear in the sentences of the verdict and in the data of the rows.
  CHECK(contains(page, "&lt;script&gt;alert(&#39;x &amp; y&#39;)&lt;/script&gt;"));
  CHECK(contains(page, "&quot;&gt;&lt;img src=x&gt;"));
  CHECK(contains(page, R"("names":["\u003cscript>alert('x & y')\u003c/script>"])"));
}

TEST_CASE("title and heading name the study") {
  CHECK(study_name(R"({"name": "a & b"})") == "a & b");
  for (const char* none : {"", "[1]", "{}", R"({"name": 3})"}) CHECK(study_name(none).empty());
  const Results results = results_of(synthetic_header() + synthetic_rows(small_sweep()));
  const std::string page = page_html(results, {"", {}, {}, "a & b"});
  CHECK(contains(page, "<title>lambcast report: a &amp; b</title>"));
  CHECK(contains(page, "<h1>a &amp; b: does compressed training pay here?</h1>"));
  CHECK(contains(page_html(results, {"", {}, {}}), "<title>lambcast report</title>"));
}

TEST_CASE("findings of the rows are on the page in words") {
  std::istringstream rows(synthetic_header() + synthetic_rows(small_sweep()));
  std::string text, line;
  while (std::getline(rows, line))
    text += line + (text.empty() ? ",findings\n" : ",stream-limit\n");
  const std::string page = page_of(text);
  CHECK(contains(page, "<h2>Findings</h2>"));
  CHECK(contains(page, "<li><b>stream-limit</b>, "));
  CHECK(contains(page, " rows: TCP streams carry less than the NIC"));
  CHECK_FALSE(
      contains(page_of(synthetic_header() + synthetic_rows(small_sweep())), "Findings</h2>"));
}

TEST_CASE("a figure has a section if it has a chart, and no empty box if it has none") {
  Figure figure;
  figure.name = "a";
  figure.title = "A & B";
  figure.left_out = "It needs two GPU counts.";
  CHECK(figure_sections({figure}).empty());
  figure.left_out = "";
  CHECK(figure_sections({figure}).empty());
  figure.chart = R"({"panels":[]})";
  figure.caption = "<i>";
  const std::string section = figure_sections({figure});
  CHECK(contains(section, "<h2>A &amp; B</h2>"));
  CHECK(contains(section, R"(<script type="application/json">{"panels":[]}</script>)"));
  CHECK(contains(section, "&lt;i&gt;"));
}

TEST_CASE("the page has every row of a study as data, and reports rows that it leaves out") {
  const std::string row = synthetic_rows({.clusters = {{"box", 4, 10}},
                                          .optimizers = {"lamb"},
                                          .gpus = {8},
                                          .global_batches = {8192}});
  const auto of_rows = [&](std::size_t count) {
    std::string results = synthetic_header();
    for (std::size_t i = 0; i < count; ++i) results += row;
    return page_of(results);
  };
  const std::string all = of_rows(3384);
  CHECK(contains(all, R"("total":3384,"thinning":"","rows":3384,)"));
  CHECK(contains(of_rows(Listing::most_rows + 2),
                 "The page holds 50001 of the 100002 rows of results.csv: one row in 2."));
}

TEST_CASE("swept keys are listed with the rows") {
  CHECK(swept_keys(R"({"axes": {"gpus": ["8"], "</script>": []}})") ==
        std::vector<std::string>{"gpus", "</script>"});
  CHECK(swept_keys("").empty());
  CHECK(swept_keys("[1]").empty());
  CHECK(swept_keys(R"({"axes": 3})").empty());
  const std::string page =
      page_html(results_of(synthetic_header()), {"", {"gpus", "</script>"}, {"a.svg"}});
  CHECK(contains(page, R"({"swept":["gpus","\u003c/script>"],)"));
  CHECK(contains(page, "<span class=file>a.svg</span>"));
}

TEST_CASE("a kind of step that older results lack is read if it is present") {
  std::string header = synthetic_header(), row = synthetic_rows({.clusters = {{"box", 4, 10}},
                                                                 .optimizers = {"lamb"},
                                                                 .gpus = {8},
                                                                 .global_batches = {8192}});
  CHECK(results_of(header + row).points.front().kinds.size() == 1);
  header.pop_back();
  row = row.substr(0, row.find('\n'));
  header += ",refresh_step_time_us";
  row += ",5000";
  for (const std::string_view part : step_parts) {
    header += fmt::format(",refresh_{}_us", part);
    row += ",700";
  }
  const Results results = results_of(header + "\n" + row + "\n");
  const auto& kinds = results.points.front().kinds;
  REQUIRE(kinds.size() == 2);
  CHECK(kinds.begin()[1].kind == StepKind::refresh);
  CHECK(kinds.begin()[1].step_time_us == 5000);
  CHECK(contains(page_html(results, {"", {}, {}}),
                 R"("stages":[["uniform",""],["warmup","warm-up"],["compression","compressed"],)"
                 R"(["silent","silent"],["refresh","refresh"]],"parts":[["forward","forward",)"));
}

TEST_CASE("values that no run can have are refused by file, line and column") {
  std::string results = synthetic_header() + synthetic_rows({.clusters = {{"box", 4, 10}},
                                                             .optimizers = {"lamb"},
                                                             .gpus = {8},
                                                             .global_batches = {8192}});
  const auto with = [&](int column, const std::string& value) {
    std::size_t at = results.find('\n');
    for (int comma = 0; comma < column; ++comma) at = results.find(',', at + 1);
    std::string damaged = results;
    damaged.replace(at + 1, results.find(',', at + 1) - at - 1, value);
    return damaged;
  };
  for (const char* value : {"0", "-5", "1e19"})
    CHECK_THROWS_WITH(results_of(with(12 + 4 * 16 + 1, value)),
                      Catch::Contains(fmt::format("results.csv:2: run_samples_per_s: {} is what no "
                                                  "run has (allowed: above 0, up to 1e+18)",
                                                  value)));
  CHECK_THROWS_WITH(results_of(with(5, "inf")), Catch::Contains("'inf' is not a finite number"));
  CHECK_THROWS_WITH(results_of(with(5, "8x")), Catch::Contains("'8x' is not a finite number"));
}

TEST_CASE("the manifest is shown whole, its warnings first") {
  const std::string html = manifest_html(
      R"({"tool": "lambcast", "version": "1 <2>", "inputs": {"a.toml": "ab12"}, "warnings": ["careful & slow"],
          "seeds": [1, 2], "none": []})",
      "manifest.json");
  CHECK(html.find("Warnings: <ul><li>careful &amp; slow</ul>") < html.find("version"));
  CHECK(contains(html, "<tr><th>version<td>1 &lt;2&gt;"));
  CHECK(contains(html, "<tr><th>a.toml<td>ab12"));
  CHECK(contains(html, "<ul><li>1<li>2</ul>"));
  CHECK(contains(html, "<tr><th>none<td>none"));
  CHECK(contains(
      manifest_html(R"({"tool": "lambcast", "axes": [1,2,3,4,5,6,7,8,9,10,"<"]})", "manifest.json"),
      "<td>1, 2, 3, 4, 5, 6, 7, 8, 9, 10, &lt;"));
}

TEST_CASE("a manifest that is not a JSON object is refused by name") {
  CHECK_THROWS_WITH(
      manifest_html("{", "run/manifest.json"),
      Catch::StartsWith("run/manifest.json") && Catch::Contains("is not a JSON object"));
  CHECK_THROWS_AS(manifest_html("[1]", "manifest.json"), Error);
  for (const char* other : {"{}", R"({"tool": "another"})", R"({"tool": 1})"})
    CHECK_THROWS_WITH(manifest_html(other, "run/manifest.json"),
                      Catch::StartsWith("run/manifest.json: tool: is not \"lambcast\""));
}

TEST_CASE("a deeply nested manifest is refused before the stack overflows") {
  const std::string deep = "{\"tool\": \"lambcast\", \"a\":" + std::string(100'000, '[');
  CHECK_THROWS_WITH(manifest_html(deep + std::string(100'000, ']') + "}", "manifest.json"),
                    Catch::Contains("manifest.json: nests too deep"));
  CHECK_THROWS_WITH(manifest_html(deep, "manifest.json"),
                    Catch::Contains("manifest.json: is not a JSON object"));
  CHECK_THROWS_WITH(manifest_html("{\"a\": \"\xff\"}", "manifest.json"),
                    Catch::Contains("is not a JSON object"));
}

TEST_CASE("a point that cannot run shows its settings, even if they are not numbers") {
  std::string results = synthetic_header() + synthetic_rows(small_sweep());
  const std::size_t row = results.rfind('\n', results.find("infeasible: "));
  std::size_t at = row;
  for (int comma = 0; comma < 11; ++comma) at = results.find(',', at + 1);
  results.replace(at + 1, results.find(',', at + 1) - at - 1, "<10%>");
  CHECK(contains(page_of(results), R"("\u003c10%>")"));
}

TEST_CASE("settings of a point are those that none of its numbers shows") {
  const auto settings = [](const std::string& field) {
    std::string results = synthetic_header() + synthetic_rows(small_sweep());
    results.insert(results.find('\n'), ",settings");
    for (std::size_t at = results.find('\n') + 1; at < results.size();
         at = results.find('\n', at) + 1)
      results.insert(results.find('\n', at), "," + field);
    return results_of(results).points.front().settings.text();
  };
  CHECK(settings("") == "");
  CHECK(settings("cluster.nic.bandwidth=1 Gbit/s; samples=9").empty());
  CHECK(settings("cluster.nic.bandwidth=1 Gbit/s; model.ffn=2; samples=9; tp=1") ==
        "model.ffn=2; tp=1");
}
