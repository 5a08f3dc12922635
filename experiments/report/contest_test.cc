#include "experiments/report/contest.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <map>
#include <sstream>

#include "experiments/report/answer.h"
#include "experiments/report/figure.h"
#include "experiments/report/summary.h"
#include "experiments/report/synthetic_sweep.h"

using namespace lambcast;
using namespace lambcast::report;
using Catch::Matchers::Contains;

namespace {

std::string header() {
  std::string text = synthetic_header();
  text.pop_back();
  return text + ",speedup_low,speedup_high,settings\n";
}

// Returns a row of results.csv for `exchange`, or for 1-bit Adam. Columns without an argument stay
// empty.
std::string row(const std::string& exchange, double nic_Gbps, double gpus, double speedup) {
  const bool onebit = exchange == "onebit_adam";
  const double run_s = 1000 / speedup;
  std::map<std::string, std::string> fields{
      {"model", "tiny"},
      {"cluster", "box"},
      {"optimizer", onebit ? exchange : "adam"},
      {"backend", "nccl"},
      {"baseline_optimizer", "adam"},
      {"status", "ok"},
      {"cost_source", "assumed"},
      {"freeze_step", onebit ? "101" : ""},
      {"settings", onebit ? "" : "cluster.nic.bandwidth=1 Gbit/s; exchange=" + exchange}};
  for (const auto& [title, value] : {std::pair{"nodes", gpus / 4},
                                     {"gpus", gpus},
                                     {"micro_batch", 16.},
                                     {"grad_accum", 1.},
                                     {"global_batch", 16 * gpus},
                                     {"seq_len", 128.},
                                     {"steps", 1000.},
                                     {"run_time_s", run_s},
                                     {"run_samples_per_s", 16 * gpus * 1000 / run_s},
                                     {"speedup_vs_baseline", speedup},
                                     {"nic_bandwidth_Gbps", nic_Gbps},
                                     {"speedup_low", 0.8 * speedup},
                                     {"speedup_high", 1.25 * speedup}})
    fields[title] = fmt::format("{}", value);
  std::string text;
  std::istringstream titles(header());
  for (std::string title; std::getline(titles, title, ',');) {
    while (!title.empty() && title.back() == '\n') title.pop_back();
    text += (text.empty() ? "" : ",") + fields[title];
  }
  return text + "\n";
}

// Results in which fp8 pays below 10 Gbit/s, top-k nowhere and 1-bit Adam everywhere. At 1 Gbit/s
// fp8 is faster than 1-bit Adam.
std::string study() {
  std::string text = header();
  for (const double gpus : {8., 16.}) {
    for (const auto& [nic, fp8, topk, onebit] :
         {std::array{1., 4., 0.9, 2.}, std::array{100., 0.25, 0.5, 1.5}}) {
      text += row("all_reduce", nic, gpus, 1);
      text += row("fp8", nic, gpus, fp8);
      text += row("topk:1%", nic, gpus, topk);
      text += row("onebit_adam", nic, gpus, onebit);
    }
  }
  return text;
}

}  // namespace

TEST_CASE("a baseline optimizer with another exchange is a separate candidate") {
  const Results results = results_of(study());
  CHECK(results.points[0].optimizer == "adam");
  CHECK_FALSE(results.points[0].compressed());
  CHECK(results.points[1].optimizer == "adam with fp8");
  CHECK(results.points[1].compressed());
  CHECK(results.points[1].exchanges());
  CHECK(results.points[1].settings.empty());
  CHECK(results.points[3].optimizer == "onebit_adam");
  CHECK_FALSE(results.points[3].exchanges());
  const Summary summary = summary_of(results.points);
  CHECK(summary.verdicts.judged() == 12);
}

TEST_CASE("the contest names which candidate wins in which places, and by how much") {
  const Results results = results_of(study());
  const Contest contest = contest_of(results.points);
  CHECK(contest.places == 4);
  CHECK(contest.candidates == 3);
  CHECK(contest.plain == 0);
  REQUIRE(contest.wins.size() == 2);
  CHECK(contest.wins[0].candidate == "adam with fp8");
  CHECK(contest.wins[0].places == 2);
  CHECK(headline_of(contest) ==
        "Adam with fp8 is the fastest of 3 ways of sending less in 2 of 4 places, at most 4.00x "
        "(3.20 to 5.00x) as fast as Adam (box, 8 GPUs).");
  CHECK_THAT(detail_of(contest),
             Contains("1-bit Adam is fastest in 2, at most 1.50x (1.20 to 1.88x) (box, 8 GPUs)") &&
                 Contains("further steps"));
  REQUIRE(contest.clusters.size() == 1);
  CHECK(contest.clusters[0].winner->gpus == 16);
  CHECK(contest.clusters[0].next->optimizer == "onebit_adam");
}

TEST_CASE("if no candidate beats the baseline run, the contest states that") {
  std::string text = header() + row("fp8", 10, 8, 0.9) + row("int8", 10, 8, 0.8);
  CHECK(headline_of(contest_of(results_of(text).points)) ==
        "None of 2 ways of sending less is faster than the plain run in the one place.");
  text += row("fp8", 10, 16, 1.2) + row("int8", 10, 16, 0.8);
  CHECK_THAT(detail_of(contest_of(results_of(text).points)),
             Contains("in 1 nothing is faster than the plain run"));
}

TEST_CASE("there is no contest with one candidate, nor without an exchange") {
  CHECK_FALSE(contest_of(results_of(header() + row("fp8", 10, 8, 2)).points).held());
  CHECK_FALSE(contest_of(results_of(synthetic_study()).points).held());
}

TEST_CASE("the first screen has a bar and a break-even for each exchange") {
  const Results results = results_of(study());
  const Answer answer = answer_of(results, summary_of(results.points));
  CHECK_THAT(answer.headline, Catch::StartsWith("Adam with fp8 is the fastest"));
  REQUIRE(answer.numbers.size() == 1);
  CHECK(answer.numbers[0].value == "4.00x");
  CHECK_THAT(answer.numbers[0].label,
             Contains("3.20 to 5.00x") && Contains("next 1-bit Adam, 2.00x"));
  REQUIRE(answer.ranges.size() == 3);
  const auto label = [&](const std::string& candidate) {
    for (const Range& range : answer.ranges)
      if (range.label.starts_with(candidate)) return range.label;
    return std::string();
  };
  // The speed-up is 4 at 1 Gbit/s (interval 3.2 to 5) and 1/4 at 100 Gbit/s (0.2 to 0.3125).
  CHECK_THAT(label("Adam with fp8"), Contains(": pays below 10 Gbit/s (") && Contains(" to "));
  CHECK_THAT(label("Adam with topk:1%"), Contains("pays at none of 2 bandwidths scanned"));
  CHECK_THAT(label("1-bit Adam"), Contains("pays at every bandwidth scanned"));
  CHECK_THAT(answer.picture, Contains("box with 16 GPUs"));
}

TEST_CASE("one figure has a line for each exchange") {
  const Results results = results_of(study());
  const auto figure = exchange_figure(Rows(results.points));
  REQUIRE(figure);
  CHECK(figure->left_out.empty());
  CHECK_THAT(figure->data, Contains("Adam with fp8") && Contains("Adam with topk:1%"));
  CHECK_FALSE(exchange_figure(Rows(results_of(synthetic_study()).points)));
  std::size_t own = 0;
  for (const Figure& f : figures_of(results.points))
    own += f.name.find("with") != std::string::npos ? 1 : 0;
  CHECK(own == 0);
}
