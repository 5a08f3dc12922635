#include "experiments/report/answer.h"

#include <catch2/catch.hpp>

#include "experiments/report/point_name.h"
#include "experiments/report/synthetic_sweep.h"

using namespace lambcast;
using namespace lambcast::report;
using Catch::Matchers::Contains;

namespace {

Answer answer_of_text(const std::string& text) {
  const Results results = results_of(text);
  return answer_of(results, summary_of(results.points));
}

}  // namespace

TEST_CASE("answer: a study of compression states where it pays, and from which bandwidth on") {
  const Results results = results_of(synthetic_study());
  const Summary summary = summary_of(results.points);
  const Answer answer = answer_of(results, summary);
  CHECK_THAT(answer.headline, Contains(" is ") && Contains(" as fast as ") &&
                                  Contains("; break-even on " + summary.crossings[0].cluster));
  CHECK_THAT(
      answer.headline,
      Catch::Matches(".*[0-9.]+x.* as fast as .* on .* \\((pays|does not pay|no difference|not "
                     "certain); [0-9]+ GPUs, batch [0-9,]+, backend .*\\).*"));
  CHECK_THAT(answer.headline, !Contains("Measure first") && !Contains(" points"));
  CHECK_THAT(answer.detail, Catch::StartsWith("Pays in ") && Contains(" points, most: "));
  REQUIRE(answer.numbers.size() == 3);
  CHECK(answer.numbers[0].value == fmt::format("{:.2f}x", summary.best->speedup));
  CHECK(answer.numbers[1].value == fmt::format("{:.2f}x", summary.worst->speedup));
  REQUIRE_FALSE(summary.crossings.empty());
  CHECK_THAT(answer.numbers[2].value, Contains("Gbit/s"));
  CHECK_THAT(answer.numbers[2].label, Contains(summary.crossings[0].cluster));
  CHECK(answer.level == 1);
  REQUIRE(answer.ranges.size() == summary.spreads.size());
  CHECK(answer.ranges[0].least == summary.spreads[0].least);
  CHECK_THAT(answer.rests_on, Contains("Costs are, at their weakest"));
}

TEST_CASE("answer: a number is printed with the value of every swept key, and of no other") {
  SyntheticSweep sweep{.clusters = {{"box", 4, 10}},
                       .optimizers = {"lamb", "onebit_lamb"},
                       .gpus = {16},
                       .global_batches = {8192}};
  const auto best = [&] {
    const Answer answer = answer_of_text(synthetic_header() + synthetic_rows(sweep));
    REQUIRE_FALSE(answer.numbers.empty());
    return answer.numbers[0].label;
  };
  CHECK_THAT(best(), Catch::EndsWith("1-bit LAMB over LAMB, box, 16 GPUs, batch 8192"));
  sweep.freeze_shares = {0.1, 0.25};
  CHECK_THAT(best(), Catch::EndsWith("box, 16 GPUs, batch 8192, freeze_step 599 of 5993"));
  sweep.backends = {{"nccl", true}, {"mpi", true}};
  CHECK_THAT(best(), Catch::Matches(".*batch 8192, freeze_step 599 of 5993, backend (nccl|mpi)"));
}

TEST_CASE("answer: a key that follows from a named key is not named") {
  Results results = results_of(synthetic_header() + synthetic_rows({.clusters = {{"box", 4, 10}},
                                                                    .optimizers = {"lamb"},
                                                                    .gpus = {8, 16},
                                                                    .global_batches = {8192}}));
  std::vector<Point>& points = results.points;
  REQUIRE(points.size() == 2);
  points[1].steps = 77;  // as a run on other GPUs has
  points[1].seq_len = 512;
  CHECK(point_name(points[1], points) == "box, 16 GPUs, batch 8192");
  points.push_back(points[1]);
  points[2].steps = 99;
  points[2].freeze_step = 9;  // determined by the number of steps
  CHECK(point_name(points[1], points) == "box, 16 GPUs, batch 8192, 77 steps");
  points[1].settings = "framework=megatron; tp=2";
  points[2].settings = "framework=megatron; tp=21";
  points[0].settings = "framework=megatron";
  CHECK(point_name(points[1], points) == "box, 16 GPUs, batch 8192, 77 steps, tp=2");
  CHECK(point_name(points[0], points) == "box, 8 GPUs, batch 8192, no other settings");
  points[2].findings = "onebit-removed memory-tight";
  CHECK_THAT(point_name(points[2], points), Catch::EndsWith(" (it may not fit in memory)"));
}

TEST_CASE("answer: a row is distinguished by the keys of all rows, kept or not") {
  const Results results =
      results_of(synthetic_header() + synthetic_rows({.clusters = {{"box", 4, 10}},
                                                      .optimizers = {"lamb"},
                                                      .gpus = {8},
                                                      .global_batches = {8192}}));
  std::vector<Point> kept(2, results.points.front());
  kept[0].steps = kept[1].steps = 100;
  kept[0].freeze_step = kept[1].freeze_step = 17;
  kept[0].seq_len = 128;
  kept[1].seq_len = 512;
  Point best = kept[0];
  best.freeze_step = 2;
  CHECK(point_name(best, kept) == "box, 8 GPUs, batch 8192, freeze_step 2 of 100, seq_len 128");
  kept[1].seq_len = 128;
  CHECK(point_name(best, kept) == "box, 8 GPUs, batch 8192, freeze_step 2 of 100");
}

TEST_CASE("answer: a sweep without compression has its own three numbers and no level") {
  const Answer answer =
      answer_of_text(synthetic_header() + synthetic_rows({.clusters = {{"box", 4, 10}},
                                                          .optimizers = {"lamb"},
                                                          .gpus = {8, 16},
                                                          .global_batches = {8192}}));
  CHECK_THAT(answer.headline, Contains("2 of 2 points run"));
  CHECK(answer.numbers.size() == 3);
  CHECK(std::isnan(answer.level));
  CHECK(answer.ranges.size() == 1);
}

TEST_CASE("answer: results without a row that ran, or without rows, give one sentence") {
  CHECK(answer_of_text(synthetic_header()).headline == "There are no points.");
  const Answer answer =
      answer_of_text(synthetic_header() + synthetic_rows({.clusters = {{"box", 4, 10}},
                                                          .optimizers = {"lamb"},
                                                          .gpus = {16},
                                                          .global_batches = {512}}));
  CHECK(answer.headline == "None of 1 points can run.");
  CHECK(answer.numbers.empty());
  const std::string html = answer_html(answer);
  CHECK_THAT(html, !Contains("class=numbers") && !Contains("class=ranges"));
}

TEST_CASE("answer: intervals and what was calibrated come from the rows") {
  std::string results = synthetic_header() + synthetic_rows({.clusters = {{"box", 4, 10}},
                                                             .optimizers = {"lamb"},
                                                             .gpus = {8, 16},
                                                             .global_batches = {8192}});
  Results read = results_of(results);
  read.grounds = {1, 1, {{10, 1}, {20, 1}, {30, 1}}, {{15, 1}, {25, 1}, {35, 1}}};
  const Answer answer = answer_of(read, summary_of(read.points));
  CHECK_THAT(answer.rests_on,
             Contains("calibrated on in 1 of 2 rows") && Contains("20 % less or 25 % more"));
}

TEST_CASE("answer: names in it are escaped, and bars stay inside the picture") {
  Answer answer;
  answer.headline = "<b>";
  answer.numbers = {{"1", "<script>"}};
  answer.picture = "x";
  answer.ranges = {{"<i>", 0.5, 1, 2}, {"b", 3, 3, 3}};
  answer.level = 1;
  const std::string html = answer_html(answer);
  CHECK_THAT(html, !Contains("<script>") && !Contains("<b>&lt;b") && Contains("&lt;i&gt;"));
  CHECK_THAT(html, Contains("extent both") && Contains("extent gain"));
  for (std::size_t at = html.find("left:"); at != std::string::npos;
       at = html.find("left:", at + 1)) {
    const double left = std::stod(html.substr(at + 5));
    CHECK((left >= 0 && left <= 100));
  }
}
