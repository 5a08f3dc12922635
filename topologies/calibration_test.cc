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

TEST_CASE("calibration: an interval widens with the distance from what was measured") {
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
  // Beside the band: 0.75 for twice the nodes, as much again, as squares, for four times; 0.3 for
  // another operation; one doubling for any size outside.
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
  // Half the GPUs of each node are a doubling away, and as far as that where it is the nodes; of
  // two layouts the nearest counts. Six of eight places in use: 3 a node.
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
  // Several nodes, where one was measured, and the reverse.
  calibration.layouts = {{4, {1, 1}}};
  CHECK(interval(Op::all_reduce, 1e6, 8, 2).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::hypot(0.75, 0.8)))));
  calibration.layouts = {{4, {2, 8}}};
  CHECK(interval(Op::all_reduce, 1e6, 4, 1).high.us() ==
        Approx(100 * std::exp(std::hypot(band, std::hypot(0.75, 0.75)))));
}

TEST_CASE("calibration: less knowledge never narrows an interval, and none goes out of hand") {
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
  // Far enough away, a calibration says nothing any more.
  const NicRate rate = NicRate::effective;
  CHECK(extrapolated(Op::all_reduce, 1e6, 16384, rate) == uncalibrated(1e6, 16384, rate));
  // 64 MiB over 1,024 ranks leave each what 2 MiB do over 32.
  CHECK(uncalibrated(64 << 20, 256, rate) == uncalibrated(2 << 20, 8, rate));
  CHECK(uncalibrated(64 << 20, 8, rate) == Approx(0.55));
  CHECK(uncalibrated(64 << 20, 8, NicRate::nominal) == Approx(1));
  // One whose own band is wider stays as wide.
  Calibration noisy = calibration;
  noisy.bands = {{Bytes(1e300), 0.1, 10}};
  for (const int nodes : {4, 64})
    CHECK(interval_of(noisy, Op::all_reduce, Bytes(1e6), 4 * nodes, nodes, rate, Typical::none, t)
              .high.us() == Approx(10 * t.us()));
}

TEST_CASE("calibration: another machine of the same hardware is not called calibrated") {
  Calibration calibration = of_four_a_node(2, 8);
  const Duration t = Duration::microseconds(100);
  const auto interval = [&](double size, int nodes) {
    return interval_of(calibration, Op::all_reduce, Bytes(size), 4 * nodes, nodes, NicRate::nominal,
                       Typical::rdma, t);
  };
  CHECK(interval(1e6, 4).ground == Ground::calibrated);
  CHECK(interval(1e6, 32).ground == Ground::extrapolated);
  // What fits badly is not called calibrated either, inside or not.
  CHECK(interval(2048, 4).ground == Ground::extrapolated);
  calibration.another_machine = true;
  const auto preset = interval(1e6, 4);
  CHECK(preset.ground == Ground::same_hardware);
  CHECK_FALSE(preset.calibrated);
  CHECK(preset.high.us() == Approx(100 * std::exp(std::hypot(std::log(1.1), 0.3))));
  // A user's own tables of one layout stand in front; elsewhere the preset still says what it knew.
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

TEST_CASE("calibration: priors of other fabrics narrow what nobody measured") {
  const Duration t = Duration::microseconds(100);
  const auto half_width = [&](double size, Typical typical) {
    return std::log(uncalibrated_interval(Bytes(size), 8, NicRate::nominal, typical, t).high.us() /
                    100);
  };
  for (const double size : {4096., 1e6, 1e9}) {
    CHECK(half_width(size, Typical::rdma) < half_width(size, Typical::socket));
    CHECK(half_width(size, Typical::socket) <= half_width(size, Typical::none));
  }
}

}  // namespace
}  // namespace lambcast
