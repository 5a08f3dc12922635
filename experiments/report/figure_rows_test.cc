// Tests of the rows that figures draw, and of the intervals of these rows.
#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "experiments/report/contains_test.h"
#include "experiments/report/figure.h"
#include "experiments/report/points_test.h"

using namespace lambcast::report;
using lambcast::contains;
using lambcast::StepKind;

TEST_CASE("figures have the intervals of their rows") {
  std::vector<Point> points = {packed(8, 100), packed(16, 160), packed(8, 90), packed(16, 150)};
  points[2].global_batch = points[3].global_batch = 8192;
  for (Point& p : points) {
    p.run_low_s = p.run_time_s / 1.5;
    p.run_high_s = p.run_time_s * 2;
    p.speedup_low = 1.5;
    p.speedup_high = 3;
    p.kinds = {{{StepKind::compression, 100, 80, 200, {100}}}};
  }
  CHECK(rows(throughput_figure(points).data)[0] == "8 90 90 45 135 ? ?");
  CHECK(rows(efficiency_figure(points).data)[0] == "8 100 100 50 150 ? ?");
  CHECK(rows(batch_figure(points).data)[0] == "4096 2 1.5 3");
  CHECK(contains(rows(step_figure(points, "onebit_lamb").data)[1], " 80 200 "));
  for (Point& p : points) p.nic_Gbps = p.global_batch == 8192 ? 100 : 10;
  for (Point& p : points) p.global_batch = 4096;
  CHECK(contains(map_figure(points, "onebit_lamb").script, "dashed") ==
        contains(map_figure(points, "onebit_lamb").data, "ends of its interval"));
  points = {packed(8, 100, 167), packed(8, 90, 500)};
  for (Point& p : points) p.run_low_s = p.run_time_s / 2, p.run_high_s = p.run_time_s * 2;
  const Figure freeze = freeze_figure(points, "onebit_lamb");
  CHECK(contains(freeze.data, "\"NCCL, low\" \"NCCL, high\""));
  CHECK(contains(freeze.script, "filledcurves"));
  CHECK(contains(freeze.script, "'band: interval'"));
}

TEST_CASE("no figure draws a backend that ends with an error") {
  std::vector<Point> points = {packed(8, 100, 167), packed(8, 90, 500), packed(16, 180, 167)};
  for (Point p : {packed(8, 999, 167), packed(8, 999, 500), packed(16, 999, 167)}) {
    p.backend = "mpi";
    p.findings = "memory-tight backend-fails";
    points.push_back(p);
  }
  for (const Figure& figure : figures_of(points)) {
    INFO(figure.name);
    CHECK_FALSE(contains(figure.data, "MPI"));
    CHECK_FALSE(contains(figure.data, "999"));
  }
  CHECK(contains(freeze_figure(points, "onebit_lamb").caption, "without backends that end"));
}

TEST_CASE("of equally common bandwidths the least, middle and largest are drawn") {
  std::vector<Point> points;
  for (const double nic : {1, 2, 4, 8, 16})
    for (Point p : {packed(8, 100), packed(16, 190)}) {
      p.nic_Gbps = nic;
      p.kinds = {{{StepKind::compression, 100, absent, absent, {100}}}};
      points.push_back(p);
    }
  for (const Figure& figure :
       {throughput_figure(points), efficiency_figure(points), step_figure(points, "onebit_lamb")}) {
    INFO(figure.name);
    for (const int nic : {1, 4, 16})
      CHECK(contains(figure.script, fmt::format("'box, {} Gbit/s NIC'", nic)));
    for (const int nic : {2, 8})
      CHECK_FALSE(contains(figure.script, fmt::format("'box, {} Gbit/s NIC'", nic)));
  }
}
