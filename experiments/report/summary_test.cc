#include "experiments/report/summary.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "experiments/report/contains_test.h"
#include "experiments/report/report.h"
#include "experiments/report/synthetic_sweep.h"

using namespace lambcast::report;
using lambcast::contains;

namespace {

std::string words(const Summary& summary) {
  return fmt::format("{}", fmt::join(in_words(summary), " "));
}

Point compared(double nic_Gbps, double gpus, double speedup) {
  Point p;
  p.model = "tiny";
  p.cluster = "box";
  p.optimizer = "onebit_adam";
  p.baseline = "adam";
  p.backend = "nccl";
  p.status = "ok";
  p.gpus = gpus;
  p.global_batch = 4096;
  p.steps = 1000;
  p.freeze_step = 100;
  p.nic_Gbps = nic_Gbps;
  p.speedup = speedup;
  p.samples_per_s = speedup;
  return p;
}

}  // namespace

TEST_CASE("the summary names best, worst and break-even with their conditions") {
  // At 16 GPUs the speed-up is 4 at 1 Gbit/s and 1/4 at 100 Gbit/s, so it is 1 at 10 Gbit/s.
  const std::vector<Point> points = {compared(1, 8, 2), compared(100, 8, 0.5), compared(1, 16, 4),
                                     compared(100, 16, 0.25)};
  const std::string text = words(summary_of(points));
  CHECK(contains(text, "Of 4 points 4 ran."));
  CHECK(contains(text, "Pays in 2 of 4 points, most: 4.00x; does not pay in 2."));
  CHECK(contains(text,
                 "Best: 4.00x for 1-bit Adam over Adam (tiny on box, 16 GPUs, global batch "
                 "4096, nccl, freeze_step 100 of 1000, 1 Gbit/s NIC)"));
  CHECK(contains(text, "Worst: 0.25x"));
  CHECK(contains(text, "1-bit Adam over Adam pays below 10 Gbit/s on box (16 GPUs)."));
}

TEST_CASE("the summary's break-even has the interval that the rows have") {
  // The low end is 1 at 100^(1/3) Gbit/s; the high end stays above 1 up to 100 Gbit/s.
  std::vector<Point> points = {compared(1, 16, 4), compared(100, 16, 0.25)};
  points[0].speedup_low = 2;
  points[0].speedup_high = 8;
  points[1].speedup_low = 0.25;
  points[1].speedup_high = 1.5;
  CHECK(contains(words(summary_of(points)), "pays below 10 Gbit/s (4.64 to above 100) on box"));
}

TEST_CASE("the summary names turning points of steps over GPUs") {
  std::vector<Point> points(3, compared(10, 8, 1.1));
  const double gpus[] = {512, 384, 456}, run_s[] = {431.9, 836, 845.1};
  for (std::size_t i = 0; i < 3; ++i) {
    points[i].gpus = gpus[i];
    points[i].micro_batch = 16;
    points[i].grad_accum = 1;
    points[i].global_batch = 16 * gpus[i];
    points[i].run_time_s = run_s[i];
  }
  CHECK(contains(words(summary_of(points)),
                 "A step is not monotone in GPUs: 845.1 ms at 456, 431.9 ms at 512 (1-bit Adam on "
                 "box)."));
}

TEST_CASE(
    "the summary judges by whole intervals and names the shipped kernels if they change the "
    "verdict") {
  std::vector<Point> points(2, compared(10, 8, 1.1));
  for (Point& p : points) {
    p.speedup_low = 0.9;
    p.speedup_high = 1.3;
    p.measure_first = "all_reduce over nccl";
    p.fused_speedup = 2;
    p.fused_low = 1.5;
    p.fused_high = 2.5;
    p.findings = "incast stream-limit";
  }
  points[1].findings = "stream-limit";
  const std::string text = words(summary_of(points));
  CHECK(contains(text,
                 "Not certain in 2 of 2 points: at best compression makes the run 1.10x (0.90 to "
                 "1.30x) as fast. Measure first: all_reduce over nccl. With the fused kernels that "
                 "ship here (--kernels fused): pays in all 2 points, most: 2.00x "
                 "(1.50 to 2.50x)."));
  CHECK(contains(text, "Best: 1.10x (0.90 to 1.30x) for 1-bit Adam"));
  CHECK(contains(text, "Found (lambcast help findings): incast in 1 row, stream-limit in 2 rows."));
  points[0].steps = 1000;
  points[0].freeze_step = 500;
  points[0].warmup_steps = 960;  // an unusual share of warm-up, set by its policy
  CHECK(
      contains(words(summary_of(points)), "Not certain: at best compression makes the run 1.10x"));
}

TEST_CASE("break-even outside the scan is reported as such") {
  std::vector<Point> points = {compared(1, 8, 2), compared(100, 8, 1.5), compared(1, 16, 4),
                               compared(100, 16, 1.25)};
  CHECK(contains(words(summary_of(points)), "pays at every bandwidth scanned (1 to 100 Gbit/s)"));
  for (Point& p : points) p.speedup = 0.5;
  CHECK(contains(words(summary_of(points)), "pays at no bandwidth scanned"));
  points.resize(1);
  CHECK(contains(words(summary_of(points)), "so no break-even bandwidth"));
}

TEST_CASE("a flat line has no break-even") {
  const std::vector<Point> points = {compared(1, 8, 1.0002), compared(100, 8, 0.9998)};
  const Summary summary = summary_of(points);
  CHECK(summary.crossings.empty());
  CHECK(contains(words(summary), "the speed-up does not depend on the NIC bandwidth here"));
}

TEST_CASE("a scan that pays throughout reports where its interval includes 1") {
  std::vector<Point> points = {compared(1, 8, 2), compared(100, 8, 1.5)};
  const auto said = [&](double low_at_1, double low_at_100) {
    points[0].speedup_low = low_at_1;
    points[1].speedup_low = low_at_100;
    for (Point& p : points) p.speedup_high = 3;
    return words(summary_of(points));
  };
  CHECK(contains(said(1.5, 1.2), "pays at every bandwidth scanned (1 to 100 Gbit/s) on"));
  CHECK(contains(said(2, 0.5),
                 "pays at 1 of 2 bandwidths scanned (1 to 100 Gbit/s; not certain at 1 of "
                 "them, 100) on"));
  CHECK(contains(said(0.5, 2), "(1 to 100 Gbit/s; not certain at 1 of them, 1) on"));
  CHECK(contains(said(0.5, 0.9),
                 "pays at none of 2 bandwidths scanned (1 to 100 Gbit/s; not certain at 2 of "
                 "them, from 1 to 100) on"));
  for (Point& p : points) {
    p.speedup = 0.5;
    p.speedup_low = 0.2;
  }
  points[0].speedup_high = 2;
  points[1].speedup_high = 0.5;
  CHECK(contains(words(summary_of(points)),
                 "pays at none of 2 bandwidths scanned (1 to 100 Gbit/s; not certain at 1 of "
                 "them, 1) on"));
}

TEST_CASE("a scan with one certain bandwidth in ten does not pay at every one") {
  std::vector<Point> points;
  for (int i = 0; i < 10; ++i) {
    points.push_back(compared(i + 1, 8, 1.5));
    points.back().speedup_low = i == 0 ? 1.2 : 0.9;
    points.back().speedup_high = 2;
  }
  const std::string text = words(summary_of(points));
  CHECK(contains(text,
                 "pays at 1 of 10 bandwidths scanned (1 to 10 Gbit/s; not certain at 9 of "
                 "them, from 2 to 10)"));
  CHECK_FALSE(contains(text, "every bandwidth"));
}

TEST_CASE("break-even is found in a scan at the largest GPU count that has several bandwidths") {
  // The speed-up falls from 4 at 1 Gbit/s to 1/4 at 100 Gbit/s, so it is 1 at 10 Gbit/s.
  std::vector<Point> points = {compared(1, 8, 4), compared(100, 8, 0.25)};
  CHECK(contains(words(summary_of(points)), "pays below 10 Gbit/s on box (8 GPUs)"));
  points.push_back(compared(100, 16, 0.1));  // one bandwidth is no scan
  CHECK(contains(words(summary_of(points)), "pays below 10 Gbit/s on box (8 GPUs)"));
}

TEST_CASE("runs without warm-up, and those that mostly warm up, are left out and reported") {
  std::vector<Point> points(6, compared(10, 8, 1.5));
  points[0].speedup = 9;
  points[0].freeze_step = 0;
  points[1].speedup = 8;
  points[1].freeze_step = 1;
  points[2].speedup = 0.1;
  points[2].freeze_step = 502;
  points[3].speedup = 2;
  points[3].freeze_step = 501;
  points[4].speedup = 1.2;
  points[4].freeze_step = 100;
  points[5].freeze_step = absent;  // an optimizer without freeze_step
  const Summary summary = summary_of(points);
  const std::string text = words(summary);
  CHECK(contains(text, "Pays in all 3 points, most: 2.00x."));
  CHECK(contains(text, "Best: 2.00x"));
  CHECK(contains(text, "Worst: 1.20x"));
  CHECK(contains(text, "2 without warm-up (freeze_step 0 or 1)"));
  CHECK(contains(text, "1 that warm up for more than 50 % of their steps"));
  REQUIRE(summary.spreads.size() == 1);
  CHECK(summary.spreads[0].median == 1.5);
  CHECK(summary.spreads[0].count == 3);
  points.insert(points.begin(), compared(10, 8, 7));
  points[0].freeze_step = 99;
  CHECK(contains(words(summary_of(points)), "Best: 2.00x"));
  CHECK(contains(words(summary_of(points)), "; 1 that freeze in the first 10 % of their steps"));
  CHECK(summary_of(points).spreads[0].count == 3);
  points.resize(3);
  // A run that freezes early counts if no other run does.
  CHECK(contains(words(summary_of(points)), "Best: 7.00x"));
  CHECK_FALSE(contains(words(summary_of(points)), "that freeze in the first"));
  points.erase(points.begin());
  CHECK(contains(words(summary_of(points)), "Left out"));
  CHECK_FALSE(contains(words(summary_of(points)), "Best"));
}

TEST_CASE("reasons that differ only in their numbers are counted together") {
  std::vector<Point> points(5, compared(1, 8, 2));
  points[0].status = "infeasible: needs 17.5 GiB of 16 GiB";
  points[1].status = "infeasible: needs 180 GiB of 16 GiB";
  points[2].status = "infeasible: no such backend";
  const Summary summary = summary_of(points);
  REQUIRE(summary.reasons.size() == 2);
  CHECK(summary.reasons[0].count == 2);
  CHECK(contains(words(summary),
                 "Of 5 points 2 ran and 3 cannot (2 x infeasible: needs 17.5 GiB of 16 GiB; "
                 "1 x infeasible: no such backend)."));
}

TEST_CASE("results without a comparison are reported") {
  Point p = compared(1, 8, 1);
  p.optimizer = "adam";
  CHECK(contains(words(summary_of({p})), "No row compares"));
  CHECK(contains(words(summary_of({})), "Of 0 points 0 ran."));
}

TEST_CASE("the summary lists the spread of speed-ups by cluster and optimizer") {
  const SyntheticSweep sweep{.clusters = {{"box", 4, 10}},
                             .optimizers = {"lamb", "onebit_lamb"},
                             .gpus = {8, 16},
                             .global_batches = {8192}};
  const std::string text = summary_text(results_of(synthetic_header() + synthetic_rows(sweep)));
  CHECK(contains(text, "Of 4 points 4 ran."));
  CHECK(contains(text,
                 "\n  cluster  optimizer          points   least  median    most\n"
                 "  box      1-bit LAMB / LAMB       2  "));
}

TEST_CASE("a screen shows the best rows of each cluster and names the command for the rest") {
  const SyntheticSweep sweep{.clusters = {{"box", 4, 10}, {"crate", 4, 10}},
                             .optimizers = {"lamb", "onebit_lamb"},
                             .gpus = {8, 16},
                             .global_batches = {8192}};
  Results many = results_of(synthetic_header() + synthetic_rows(sweep));
  CHECK(contains(summary_screen(many, "MORE"), "\n  crate    1-bit LAMB / LAMB       2  "));
  for (int i = 0; i < 10; ++i) {
    many.summary.spreads.push_back(many.summary.spreads.front());
    many.summary.spreads.back().median += i;
  }
  const std::string text = summary_screen(many, "MORE");
  CHECK(contains(text, " more rows and "));
  CHECK(contains(text, " more sentences: MORE\n"));
  CHECK(contains(text, "the best of each cluster"));
}

TEST_CASE("the best and the worst point are named with their values of swept keys") {
  std::vector<Point> points = {compared(10, 8, 3), compared(10, 8, 0.5)};
  CHECK_FALSE(contains(words(summary_of(points)), "precision"));
  points[0].precision = "fp16";
  points[1].precision = "bf16";
  const std::string said = words(summary_of(points));
  CHECK(contains(said, "10 Gbit/s NIC, precision fp16)"));
  CHECK(contains(said, "10 Gbit/s NIC, precision bf16)"));
}
