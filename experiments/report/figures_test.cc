#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <sstream>

#include "experiments/report/contains_test.h"
#include "experiments/report/figure.h"
#include "experiments/report/points_test.h"

using namespace lambcast::report;
using lambcast::contains;
using lambcast::StepKind;

TEST_CASE("throughput data holds one row per GPU count and the ideal line") {
  // The best rate per GPU at 8 GPUs is 100 / 8 = 12.5, so ideal is 200 at 16 GPUs.
  const Figure figure = throughput_figure(
      std::vector<Point>{plain(8, 80), plain(16, 120), packed(8, 100), packed(16, 190)});
  CHECK(rows(figure.data) == std::vector<std::string>{"8 80 100 100", "16 120 190 200"});
  CHECK(contains(figure.data, "# gpus \"LAMB\" \"1-bit LAMB\" \"ideal (linear)\"\n"));
  CHECK(contains(figure.data, "# slice: tiny, seq_len 128, backend nccl, global batch 4096"));
  CHECK(contains(figure.caption, "freeze_step at 16.7 % of the steps"));
  CHECK(contains(figure.script, "'throughput.dat' index 0 using 1:3"));
  CHECK(contains(figure.script, "paper") == false);
}

TEST_CASE("efficiency is throughput as a share of the ideal line") {
  const Figure figure = efficiency_figure(
      std::vector<Point>{plain(8, 80), plain(16, 120), packed(8, 100), packed(16, 190)});
  CHECK(rows(figure.data) == std::vector<std::string>{"8 80 100 100", "16 60 95 100"});
}

TEST_CASE("a point that did not run leaves a gap, not a zero") {
  Point failed = packed(16, 190);
  failed.status = "infeasible: too large";
  const Figure figure =
      throughput_figure(std::vector<Point>{plain(8, 80), plain(16, 120), packed(8, 100), failed});
  CHECK(rows(figure.data)[1] == "16 120 ? 200");
}

TEST_CASE("each cluster is a panel with its own ideal line") {
  std::vector<Point> points = {plain(8, 80), plain(16, 120)};
  for (Point p : {plain(8, 40), plain(16, 70)}) {
    p.cluster = "slow";
    points.push_back(p);
  }
  const Figure figure = throughput_figure(points);
  CHECK(rows(figure.data) ==
        std::vector<std::string>{"8 80 80", "16 120 160", "8 40 40", "16 70 80"});
  CHECK(contains(figure.script, "index 1"));
}

TEST_CASE("a slice takes the largest batch, the usual bandwidth and the published freeze share") {
  const std::vector<Point> wanted = {plain(8, 80), plain(16, 120), packed(8, 100), packed(16, 190)};
  std::vector<Point> points = wanted;
  for (Point p : wanted) {
    p.global_batch = 1024;
    p.samples_per_s *= 3;
    points.push_back(p);
  }
  points.push_back(packed(8, 555, 0));  // compresses from the start, unlike the published run
  points.push_back(packed(16, 777, 0));
  Point scanned = plain(16, 999);
  scanned.nic_Gbps = 400;
  points.push_back(scanned);
  Point other = plain(16, 333);
  other.model = "rare";
  points.push_back(other);
  CHECK(rows(throughput_figure(points).data) ==
        std::vector<std::string>{"8 80 100 100", "16 120 190 200"});
  CHECK(contains(throughput_figure(points).data, "NICs of"));
  CHECK_FALSE(contains(throughput_figure(wanted).data, "NICs of"));
}

TEST_CASE("nccl is preferred, else the most common backend, separately for compressed rows") {
  std::vector<Point> points = {plain(8, 80), plain(16, 120), packed(8, 100), packed(16, 190)};
  for (Point p : {packed(8, 70), packed(16, 90), packed(32, 95)}) {
    p.backend = "mpi";
    points.push_back(p);
  }
  CHECK(rows(throughput_figure(points).data).size() == 2);
  for (Point& p : points) {
    if (p.backend == "nccl" && p.compressed()) p.status = "infeasible: no nccl";
  }
  CHECK(rows(throughput_figure(points).data).size() == 3);
}

TEST_CASE("an optimizer stays in the figures if its stack has special kernels") {
  // On dgx-a100-80g plain optimizers run NVIDIA's kernels, compressed ones DeepSpeed's.
  std::vector<Point> points = {plain(8, 80), plain(16, 120), packed(8, 100), packed(16, 190)};
  for (Point& p : points) p.kernels = p.compressed() ? "deepspeed" : "nvidia";
  points.push_back(points[3]);  // a third compressed row, to make the counts unequal
  points.back().freeze_step = 500;
  for (const bool compressed_first : {false, true}) {
    if (compressed_first) std::rotate(points.begin(), points.begin() + 2, points.end());
    const Figure figure = throughput_figure(points);
    CHECK(rows(figure.data) == (compressed_first
                                    ? std::vector<std::string>{"8 100 80 100", "16 190 120 200"}
                                    : std::vector<std::string>{"8 80 100 100", "16 120 190 200"}));
    CHECK(contains(figure.caption, "kernel costs "));
    CHECK(contains(figure.caption, "nvidia"));
    CHECK(contains(figure.caption, "deepspeed"));
    CHECK_FALSE(contains(freeze_figure(points, "onebit_lamb").data, "?"));
  }
  // If all rows can have the same kernels, those are chosen.
  for (Point p : {plain(8, 90), plain(16, 140), packed(8, 110), packed(16, 200)}) {
    p.kernels = "fused";
    points.push_back(p);
  }
  CHECK(contains(throughput_figure(points).caption, "kernel costs fused,"));
}

TEST_CASE(
    "a swept key that a figure does not show is fixed to one value, and its title states "
    "which") {
  struct Row {
    Name Point::*field;
    const char *usual, *other, *title;
  };
  const Row fields[] = {
      {&Point::precision, "fp16", "bf16", "precision fp16"},
      {&Point::zero_stage, "0", "1", "ZeRO stage 0"},
      {&Point::overlap, "none", "ddp", "overlap none"},
      {&Point::device, "a100-40g", "a100-80g", "device a100-40g"},
      {&Point::kernels, "deepspeed", "fused", "kernel costs deepspeed"},
      {&Point::symmetry, "auto", "off", "symmetry auto"},
      {&Point::settings, "cluster.node.gpu_link=1GB/s", "cluster.node.gpu_link=9GB/s",
       "cluster.node.gpu_link=1GB/s"},
      {&Point::settings, "", "model.ffn=2048", "no other settings"},
  };
  for (const Row& row : fields) {
    INFO(row.title);
    std::vector<Point> points;
    for (Point p : {plain(8, 80), plain(16, 120), packed(8, 100), packed(16, 190)}) {
      p.*row.field = row.usual;
      points.push_back(p);
      p.*row.field = row.other;
      p.samples_per_s *= 2;  // a faster row must not be preferred for it
      points.push_back(p);
    }
    const Figure figure = throughput_figure(points);
    CHECK(rows(figure.data) == std::vector<std::string>{"8 80 100 100", "16 120 190 200"});
    CHECK(contains(figure.script, fmt::format("tiny, global batch 4096, {}", row.title)));
    CHECK(contains(figure.caption, row.title));
    CHECK_FALSE(contains(figure.caption, "the fastest"));
  }
}

TEST_CASE("a sequence length, network model or number of steps that was swept is in the title") {
  std::vector<Point> points = {plain(8, 80), plain(16, 120), plain(8, 10), plain(16, 20)};
  points[2].seq_len = points[3].seq_len = 512;
  CHECK(contains(throughput_figure(points).script, "tiny, global batch 4096, seq_len 128'"));
  points = {plain(8, 80), plain(16, 120), plain(8, 81), plain(16, 121)};
  for (std::size_t i = 0; i < 4; ++i) points[i].network = i < 2 ? "analytic" : "flow";
  CHECK(contains(throughput_figure(points).script, "4096, network model analytic'"));
  points[2].network = points[3].network = "analytic";
  points[2].steps = points[3].steps = 9;
  CHECK(contains(throughput_figure(points).script, "4096, steps 1000'"));
  points[2].model = points[3].model = "rare";
  CHECK(contains(throughput_figure(points).script, "'Throughput: tiny, global batch 4096'"));
}

TEST_CASE("runs within one node do not count as a sweep over GPUs per node") {
  std::vector<Point> points;
  for (const double gpus : {1, 2, 4}) {
    points.push_back(plain(gpus, 10 * gpus));
    points.back().gpus_per_node = gpus;
    points.back().nodes = 1;
  }
  CHECK(rows(throughput_figure(points).data).size() == 3);
}

TEST_CASE("one of several numbers of GPUs per node is drawn, whole nodes or not") {
  std::vector<Point> points;
  for (const double per_node : {4, 8}) {
    for (const double gpus : {2, 4, 8, 16}) {
      Point p = plain(gpus, 10 * gpus + per_node);
      p.gpus_per_node = std::min(per_node, gpus);
      p.nodes = gpus / p.gpus_per_node;
      points.push_back(p);
    }
  }
  const Figure figure = throughput_figure(points);
  REQUIRE(rows(figure.data).size() == 4);
  CHECK(rows(figure.data)[3].substr(0, 7) == "16 164 ");
  CHECK(rows(figure.data)[2].substr(0, 5) == "8 84 ");
  CHECK(contains(figure.script, "4 GPUs per node"));
}

TEST_CASE("a plain run without a row is not in the legend of the freeze figure") {
  const Figure figure =
      freeze_figure(std::vector<Point>{packed(8, 100, 0), packed(8, 50, 500)}, "onebit_lamb");
  CHECK(contains(figure.data, "# freeze_percent \"NCCL\"\n"));
  CHECK_FALSE(contains(figure.script, "plain"));
  CHECK_FALSE(contains(figure.caption, "dashed"));
}

TEST_CASE("the fastest of rows with the same coordinates is drawn, and the caption states that") {
  Point other = packed(16, 170);
  other.micro_batch = 8;
  const Figure figure =
      throughput_figure(std::vector<Point>{packed(8, 100), packed(16, 190), other});
  CHECK(rows(figure.data)[1] == "16 190 200");
  CHECK(contains(figure.caption,
                 "of rows with the same coordinates the fastest (they differ in micro_batch)"));
}

TEST_CASE("if no global batch has several GPU counts, the micro batch is fixed: weak scaling") {
  std::vector<Point> points = {plain(8, 80), plain(16, 150)};
  points[1].global_batch = 8192;
  const Figure figure = throughput_figure(points);
  CHECK(rows(figure.data) == std::vector<std::string>{"8 80 80", "16 150 160"});
  CHECK(contains(figure.caption, "micro batch 16 x 4 steps per GPU (weak scaling)"));
}

TEST_CASE("speed-up against batch takes the largest GPU count with two batches") {
  std::vector<Point> points = {packed(8, 100), packed(16, 190), packed(16, 150), packed(32, 300)};
  points[2].global_batch = 1024;
  points[2].speedup = 3;
  const Figure figure = batch_figure(points);
  CHECK(rows(figure.data) == std::vector<std::string>{"1024 3", "4096 2"});
  CHECK(contains(figure.script, "set arrow 1 from graph 0,first 1 to graph 1,first 1"));
}

TEST_CASE("run time against freeze share has one line per backend and the level of the baseline") {
  // 1000 steps x 4096 samples at 1000, 800, 500 and 400 samples/s take 4096, 5120, 8192 and 10240
  // s.
  std::vector<Point> points = {plain(8, 400), packed(8, 1000, 0), packed(8, 500, 500),
                               packed(8, 800, 0)};
  points[3].backend = "mpi";
  points[3].cuda_aware = "false";
  const Figure figure = freeze_figure(points, "onebit_lamb");
  CHECK(contains(figure.data, "# freeze_percent \"NCCL\" \"MPI, host-staged\" \"LAMB, plain\""));
  REQUIRE(rows(figure.data).size() == 2);
  std::istringstream first(rows(figure.data)[0]);
  double share = -1, nccl = 0, mpi = 0, level = 0;
  first >> share >> nccl >> mpi >> level;
  CHECK(share == 0);
  CHECK(nccl == Approx(4096.0 / 3600));  // hours, as the longest run takes more than two
  CHECK(mpi == Approx(5120.0 / 3600));
  CHECK(level == Approx(10240.0 / 3600));
  CHECK(rows(figure.data)[1].substr(0, 3) == "50 ");
  CHECK(contains(figure.script, "whole run (hours)"));
}

TEST_CASE("freeze shares that differ only because run lengths do are no axis") {
  std::vector<Point> points = {plain(8, 400), packed(8, 1000), packed(8, 500)};
  points[2].steps = 2000;
  for (const Figure& figure : figures_of(points)) CHECK_FALSE(contains(figure.data, "nan"));
  CHECK(contains(freeze_figure(points, "onebit_lamb").left_out, "two or more values"));
  // The most common run length is drawn; two freeze shares have it.
  points.push_back(packed(8, 700, 500));
  const Figure figure = freeze_figure(points, "onebit_lamb");
  CHECK(rows(figure.data).size() == 2);
  CHECK(contains(figure.caption, "steps 1000"));
}

TEST_CASE("freeze shares that vary only in clusters without a panel are not drawn") {
  std::vector<Point> points;
  for (int i = 0; i < 8; ++i) {
    points.push_back(packed(8, 100, 167));
    points.back().cluster = fmt::format("c{}", i);
  }
  points.push_back(points.back());
  points.back().freeze_step = 500;
  CHECK(contains(freeze_figure(points, "onebit_lamb").left_out, "two or more values"));
}

TEST_CASE("a scan of bandwidths at one GPU count is a line with the level of break-even") {
  std::vector<Point> points = {packed(8, 100), packed(8, 110)};
  points[1].nic_Gbps = 100;
  points[1].speedup = 0.5;
  const Figure figure = map_figure(points, "onebit_lamb");
  CHECK(figure.left_out.empty());
  CHECK(rows(figure.data) == std::vector<std::string>{"10 2", "100 0.5"});
  CHECK(contains(figure.script, "'box, 8 GPUs'"));
  CHECK(contains(figure.script, "graph 0,first 1 to graph 1,first 1"));
}

TEST_CASE("the published freeze share is marked for the run that was published") {
  std::vector<Point> points = {packed(8, 100, 0), packed(8, 50, 500)};
  CHECK_FALSE(contains(freeze_figure(points, "onebit_lamb").script, "published"));
  for (Point& p : points) p.model = "bert-large";
  CHECK(contains(freeze_figure(points, "onebit_lamb").script, "'published'"));
  CHECK(contains(freeze_figure(points, "onebit_lamb").caption, "16.7 %, 1-bit LAMB paper"));
  for (Point& p : points) p.optimizer = "onebit_adam";
  CHECK_FALSE(contains(freeze_figure(points, "onebit_adam").script, "published"));
  CHECK_FALSE(contains(freeze_figure(points, "onebit_adam").caption, "16.7"));
}

TEST_CASE("a freeze_step past the last step is a warm-up of the whole run") {
  CHECK(packed(8, 100, 100000).freeze_share() == 1);
  CHECK(std::isnan(plain(8, 100).freeze_share()));
}

TEST_CASE("bars add up to the step time, with the remaining time as the rest of the step") {
  Point p = packed(8, 100);
  // Parts in order: forward, backward, exposed_comm, compress, decompress, optimizer, bubble. Their
  // sum is 280.
  p.kinds = {{{StepKind::warmup, 300, absent, absent, {10, 20, 30, 40, 50, 60, 70}},
              {StepKind::compression, 280, absent, absent, {10, 20, 30, 40, 50, 60, 70}}}};
  Point q = plain(8, 80);
  q.kinds = {{{StepKind::uniform, 100, absent, absent, {40, 60, 0, 0, 0, 0, 0}}}};
  const Figure figure = step_figure(std::vector<Point>{p, q}, "onebit_lamb");
  const std::vector<std::string> bars = rows(figure.data);
  REQUIRE(bars.size() == 3);
  CHECK(bars[0] == "0 \"LAMB\" 8 4096 100 40 60 0 0 0 0 0 0 0 ? ? \"100 µs\" 100");
  CHECK(bars[1] == "1 \"warm-up\" 8 4096 300 10 20 30 40 50 60 70 20 0 ? ? \"300 µs\" 300");
  CHECK(bars[2] == "2 \"compressed\" 8 4096 280 10 20 30 40 50 60 70 0 0 ? ? \"280 µs\" 280");
  CHECK(contains(figure.script, "'rest of the step'"));
  CHECK_FALSE(contains(figure.script, "whole step"));  // the legend names only drawn parts
  CHECK_FALSE(contains(figure.caption, "overlap"));
}

TEST_CASE("parts that overlap in time are named in the caption") {
  Point p = packed(8, 100);
  p.kinds = {{{StepKind::warmup, 100, absent, absent, {60, 60, 0, 0, 0, 0, 0}}}};
  CHECK(contains(step_figure(std::vector<Point>{p}, "onebit_lamb").caption,
                 "The parts of 1 bars overlap"));
}

TEST_CASE("evenly chosen GPU counts become bars if there are many") {
  std::vector<Point> points;
  for (double gpus = 1; gpus <= 1024; gpus *= 2) {  // 11 counts; every second one is drawn
    Point p = packed(gpus, 10 * gpus);
    p.kinds = {{{StepKind::warmup, 100, absent, absent, {100}}}};
    points.push_back(p);
  }
  const Figure figure = step_figure(points, "onebit_lamb");
  REQUIRE(rows(figure.data).size() == 12);  // each bar is next to one of the plain run
  CHECK(contains(rows(figure.data)[3], "\"warm-up\" 4 "));
  CHECK(contains(rows(figure.data)[11], "\"warm-up\" 1024 "));
  CHECK(contains(figure.caption, "6 of the GPU counts"));
}

TEST_CASE("a figure that the results do not allow has a reason") {
  const std::vector<Point> one_count = {plain(8, 80), packed(8, 100)};
  CHECK(contains(throughput_figure(one_count).left_out, "two or more GPU counts"));
  CHECK(contains(efficiency_figure(one_count).left_out, "two or more GPU counts"));
  CHECK(contains(batch_figure(one_count).left_out, "two or more global batches"));
  CHECK(contains(map_figure(one_count, "onebit_lamb").left_out, "scan cluster.nic.bandwidth"));
  CHECK(contains(freeze_figure(one_count, "onebit_lamb").left_out, "values of freeze_step"));
  CHECK(contains(step_figure(one_count, "onebit_lamb").left_out, "parts of its step"));
  for (const Figure& figure : figures_of(one_count)) {
    CHECK(figure.data.empty());
    CHECK(figure.script.empty());
  }
}

TEST_CASE("results without a compressed optimizer have the three general figures") {
  const std::vector<Figure> figures = figures_of({plain(8, 80), plain(16, 120)});
  REQUIRE(figures.size() == 3);
  CHECK(figures[0].left_out.empty());
  CHECK_FALSE(figures[2].left_out.empty());
  CHECK(figures_of({}).size() == 3);
}

TEST_CASE("the caption states if there are more clusters than panels") {
  std::vector<Point> points;
  for (int i = 0; i < 8; ++i) {
    for (Point p : {plain(8, 80), plain(16, 120)}) {
      p.cluster = fmt::format("c{}", i);
      points.push_back(p);
    }
  }
  const Figure figure = throughput_figure(points);
  CHECK(rows(figure.data).size() == 2 * most_panels);
  CHECK(contains(figure.caption, "the first 6 of 8 clusters and NIC bandwidths"));
}
