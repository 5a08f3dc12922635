#include "topologies/calibration.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace lambcast {
namespace {

Calibration of_four_a_node(double fewest, double most) {
  Calibration calibration;
  calibration.operations = {Op::all_reduce};
  calibration.sizes = {1024, 1048576};
  calibration.layouts = {{4, {fewest, most}}};
  calibration.bands = {{Bytes(65536), 0.5, 2.0}, {Bytes(1e300), 0.9, 1.1}};
  return calibration;
}

TEST_CASE("calibration: an interval widens with the distance from the measured range") {
  Calibration calibration = of_four_a_node(1, 8);
  const Duration t = Duration::microseconds(100);
  const auto interval = [&](Op op, double size, int ranks, int nodes) {
    return interval_of(calibration, op, Bytes(size), ranks, nodes, NicRate::nominal, Typical::none,
                       t);
  };
  const auto inside = interval(Op::all_reduce, 1e6, 32, 8);
  CHECK(inside.calibrated);
  CHECK(inside.low.us() == Approx(90));
  CHECK(inside.high.us() == Approx(110));
  CHECK(interval(Op::all_reduce, 2048, 8, 2).high.us() == Approx(200));
  // Terms that are added to the band: 0.75 for twice the nodes, sqrt(2) x 0.75 for four times the
  // nodes, 0.3 for another operation, and one doubling for any size outside the measured range.
  const double band = std::log(1.1);
  const auto twice = interval(Op::all_reduce, 1e6, 64, 16);
  CHECK_FALSE(twice.calibrated);
  CHECK(twice.high.us() == Approx(100 * std::exp(std::hypot(band, 0.75))));
  CHECK(interval(Op::all_reduce, 1e6, 128, 32).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::sqrt(2) * 0.75))));
  CHECK(interval(Op::all_reduce, 1e9, 32, 8).low.us() ==
        Approx(100 * std::exp(-std::hypot(std::log(0.9), 0.25))));
  const auto other = interval(Op::all_gather, 1e6, 32, 8);
  CHECK_FALSE(other.calibrated);
  CHECK(other.high.us() == Approx(100 * std::exp(std::hypot(band, 0.3))));
  // Half the GPUs of each node are one doubling away, and so is half the number of nodes. The
  // nearer of two layouts counts. Six ranks on two nodes count as 3 GPUs per node.
  const auto half = interval(Op::all_reduce, 1e6, 8, 4);
  CHECK_FALSE(half.calibrated);
  CHECK(half.high.us() == Approx(100 * std::exp(std::hypot(band, 0.75))));
  CHECK(interval(Op::all_reduce, 1e6, 32, 16).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::sqrt(2) * 0.75))));
  CHECK(interval(Op::all_reduce, 1e6, 6, 2).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::sqrt(std::log2(4. / 3)) * 0.75))));
  calibration.layouts.push_back({2, {8, 8}});
  CHECK(interval(Op::all_reduce, 1e6, 16, 8).calibrated);
  CHECK_FALSE(interval(Op::all_reduce, 1e6, 8, 4).calibrated);
  // The term c applies to several nodes if only one was measured, and to one node if only several
  // were.
  calibration.layouts = {{4, {1, 1}}};
  CHECK(interval(Op::all_reduce, 1e6, 8, 2).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::hypot(0.75, 0.8)))));
  calibration.layouts = {{4, {2, 8}}};
  CHECK(interval(Op::all_reduce, 1e6, 4, 1).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::hypot(0.75, 0.75)))));
}

TEST_CASE(
    "calibration: less knowledge never narrows an interval, and no interval exceeds its limit") {
  const Calibration calibration = of_four_a_node(2, 8);
  const Duration t = Duration::microseconds(1e6);
  const auto width = [&](const CalibratedInterval& interval) {
    CHECK(interval.low < t);
    return std::log(interval.high / t);
  };
  const auto extrapolated = [&](Op op, double size, int nodes, NicRate rate) {
    return width(
        interval_of(calibration, op, Bytes(size), 4 * nodes, nodes, rate, Typical::none, t));
  };
  const auto uncalibrated = [&](double size, int nodes, NicRate rate) {
    return width(uncalibrated_interval(Bytes(size), 4 * nodes, rate, Typical::none, t));
  };
  for (const double size : {8., 4096., 65536., 1e6, 4194304., 6.4e7, 1e9, 1e11}) {
    for (const NicRate rate : {NicRate::nominal, NicRate::effective}) {
      double before = extrapolated(Op::all_reduce, size, 8, rate);
      for (int nodes = 8; nodes <= 16384; nodes *= 2) {
        INFO(size << " B on " << nodes << " nodes");
        const double same = extrapolated(Op::all_reduce, size, nodes, rate);
        const double none = uncalibrated(size, nodes, rate);
        CHECK(before <= same);
        CHECK(same <= extrapolated(Op::all_to_all, size, nodes, rate));
        CHECK(extrapolated(Op::all_to_all, size, nodes, rate) <= none);
        CHECK(none <= uncalibrated(size, 2 * nodes, rate));
        CHECK(none <= uncalibrated(size, nodes, NicRate::nominal));
        CHECK(none <= std::log(6.1));
        before = same;
      }
    }
  }
  // Far enough from the measured range, a calibration has no effect.
  const NicRate rate = NicRate::effective;
  CHECK(extrapolated(Op::all_reduce, 1e6, 16384, rate) == uncalibrated(1e6, 16384, rate));
  // 64 MiB give each of 1,024 ranks as many bytes as 2 MiB give each of 32 ranks.
  CHECK(uncalibrated(64 << 20, 256, rate) == uncalibrated(2 << 20, 8, rate));
  CHECK(uncalibrated(64 << 20, 8, rate) == Approx(0.55));
  CHECK(uncalibrated(64 << 20, 8, NicRate::nominal) == Approx(1));
  // An interval whose own band is wider keeps that width.
  Calibration noisy = calibration;
  noisy.bands = {{Bytes(1e300), 0.1, 10}};
  for (const int nodes : {4, 64})
    CHECK(interval_of(noisy, Op::all_reduce, Bytes(1e6), 4 * nodes, nodes, rate, Typical::none, t)
              .high.us() == Approx(10 * t.us()));
}

TEST_CASE(
    "calibration: tables of another machine of the same hardware do not count as calibrated") {
  Calibration calibration = of_four_a_node(2, 8);
  const Duration t = Duration::microseconds(100);
  const auto interval = [&](double size, int nodes) {
    return interval_of(calibration, Op::all_reduce, Bytes(size), 4 * nodes, nodes, NicRate::nominal,
                       Typical::rdma, t);
  };
  CHECK(interval(1e6, 4).ground == Ground::calibrated);
  CHECK(interval(1e6, 32).ground == Ground::extrapolated);
  // A size band with a bad fit counts as extrapolated even inside the calibrated range.
  CHECK(interval(2048, 4).ground == Ground::extrapolated);
  calibration.another_machine = true;
  const auto preset = interval(1e6, 4);
  CHECK(preset.ground == Ground::same_hardware);
  CHECK_FALSE(preset.calibrated);
  CHECK(preset.high.us() == Approx(100 * std::exp(std::hypot(std::log(1.1), 0.3))));
  // The user's own tables of one layout take precedence; for other layouts the preset's tables
  // apply.
  Calibration own = of_four_a_node(1, 1);
  const double alone =
      interval_of(own, Op::all_reduce, Bytes(1e6), 16, 4, NicRate::nominal, Typical::rdma, t)
          .high.us();
  own.preset = std::make_shared<const Calibration>(calibration);
  const auto at = [&](int nodes) {
    return interval_of(own, Op::all_reduce, Bytes(1e6), 4 * nodes, nodes, NicRate::nominal,
                       Typical::rdma, t);
  };
  CHECK(at(1).ground == Ground::calibrated);
  CHECK(at(4).ground == Ground::same_hardware);
  CHECK(at(4).high.us() == Approx(preset.high.us()));
  CHECK(at(4).high.us() < alone);
}

TEST_CASE("calibration: priors of other fabrics narrow intervals of unmeasured machines") {
  const Duration t = Duration::microseconds(100);
  const auto half_width = [&](double size, Typical typical) {
    return std::log(uncalibrated_interval(Bytes(size), 8, NicRate::nominal, typical, t).high.us() /
                    100);
  };
  for (const double size : {4096., 1e6, 1e9}) {
    CHECK(half_width(size, Typical::rdma) < half_width(size, Typical::socket));
    CHECK(half_width(size, Typical::rdma) < half_width(size, Typical::none));
  }
}

constexpr const char* whole_calibration = R"(source = "mine"
library = "nccl"
operations = ["all_reduce"]
smallest = "1 KiB"
largest = "1 MiB"
layouts = [{ gpus_per_node = 4, nodes = [1, 8] }]
bands = [{ below = "64 KiB", low = 0.5, high = 2.0 }, { low = 0.9, high = 1.1 }]
)";

std::string with(std::string_view was, std::string_view is) {
  std::string text = whole_calibration;
  text.replace(text.find(was), was.size(), is);
  return text;
}

TEST_CASE("calibration: a description is read, and an invalid one is refused at its line") {
  const auto read = [](const std::string& text) {
    return decode_calibration(Table::parse(text, "mine.toml"));
  };
  const auto whole = read(whole_calibration);
  REQUIRE(whole);
  CHECK(describe(*whole) == "all_reduce; 1.024 kB to 1.049 MB; 4 GPUs a node on 1 to 8 nodes");
  CHECK(whole->backend == Backend::nccl);
  CHECK_FALSE(whole->another_machine);
  REQUIRE(whole->bands.size() == 2);
  CHECK(whole->bands[0].below.value() == 65536);
  CHECK(whole->bands[1].high == 1.1);
  CHECK(read(with("\"nccl\"", "\"mpi\"\nmachine = \"another\""))->another_machine);
  CHECK(read(with("\"nccl\"", "\"mpi\""))->backend == Backend::mpi_host);
  CHECK_FALSE(read(""));
  struct Row {
    const char *was, *is, *refused;
  };
  const std::vector<Row> rows{
      {"\"all_reduce\"", "\"all_reduc\"",
       "mine.toml:3: operations: unknown operation 'all_reduc', did you mean 'all_reduce'?"},
      {"\"1 KiB\"", "\"0 B\"", "mine.toml:5: largest: is below the smallest size"},
      {"\"1 MiB\"", "\"1 B\"", "mine.toml:5: largest: is below the smallest size"},
      {"[{ gpus_per_node = 4, nodes = [1, 8] }]", "[]", "layouts: is empty"},
      {"gpus_per_node = 4", "gpus_per_node = 0", "0 is out of range"},
      {"[1, 8]", "[8, 1]", "nodes: is not a range (allowed: [lowest, highest], from 1 up)"},
      {"[1, 8]", "[0, 8]", "is not a range"},
      {"[1, 8]", "[1]", "is not a range"},
      {"low = 0.5", "low = 0", "low: 0 is out of range (allowed: above 0 to 1000)"},
      {"high = 2.0", "high = 1001", "high: 1001 is out of range"},
      {"low = 0.5", "low = 2.5", "high: is below low"},
      {"low = 0.9", "below = \"64 KiB\", low = 0.9", "below: bands must be in order of size"},
      {"[{ below = \"64 KiB\", low = 0.5, high = 2.0 }, { low = 0.9, high = 1.1 }]", "[]",
       "bands: is empty"}};
  for (const Row& row : rows) {
    INFO(row.was << " -> " << row.is);
    CHECK_THROWS_WITH(read(with(row.was, row.is)), Catch::Contains(row.refused));
  }
}

TEST_CASE("calibration: every ground has its text") {
  CHECK(in_words(Ground::calibrated) == "calibrated");
  CHECK(in_words(Ground::same_hardware) == "preset of the same hardware");
  CHECK(in_words(Ground::extrapolated) == "extrapolated");
  CHECK(in_words(Ground::none) == "not calibrated");
}

TEST_CASE("calibration: an algorithm or protocol that no row ran rests on a prior") {
  Calibration calibration = of_four_a_node(2, 8);
  calibration.protocols = {"LL"};
  for (Calibration::Band& band : calibration.bands) band.algorithms = {"ring"};
  const Duration t = Duration::microseconds(100);
  const auto interval = [&](const RunBy& by, double size = 2e5) {
    return interval_of(calibration, Op::all_reduce, Bytes(size), 16, 4, NicRate::nominal,
                       Typical::rdma, t, by);
  };
  const auto ring = interval({"ring", "LL"}), tree = interval({"tree", "LL"});
  CHECK(ring.ground == Ground::calibrated);
  CHECK(interval({}).ground == Ground::calibrated);  // no preference
  CHECK(tree.ground == Ground::algorithm);
  CHECK_FALSE(tree.calibrated);
  CHECK(tree.high ==
        uncalibrated_interval(Bytes(2e5), 16, NicRate::nominal, Typical::rdma, t).high);
  CHECK(interval({"ring", "Simple"}).high == tree.high);
  // A poor fit to rings does not make intervals of trees wider than without a table.
  calibration.bands.back() = {Bytes(1e300), 0.2, 5, {"ring"}};
  CHECK(interval({"ring", "LL"}).high.us() == Approx(500));
  CHECK(interval({"tree", "LL"}).high == tree.high);
  // A tree beyond the measured layouts counts as extrapolated.
  calibration.layouts = {{4, {2, 2}}};
  CHECK(interval({"tree", "LL"}).ground == Ground::extrapolated);
}

}  // namespace
}  // namespace lambcast
