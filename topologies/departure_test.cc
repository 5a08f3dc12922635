#include "topologies/departure.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

using Catch::Contains;

TEST_CASE("departure: a term grows with the distance of each changed number") {
  const auto of = [](const Overrides& overrides) {
    return load_cluster("perlmutter-a100", overrides).departure;
  };
  CHECK(of({}) == Departure());
  // The preset has four NICs of 200 Gbit/s per node.
  CHECK(of({{"nic.bandwidth", "100 Gbit/s"}}).between_nodes == Approx(0.5 * std::log(2)));
  CHECK(of({{"nic.bandwidth", "400 Gbit/s"}}).between_nodes == Approx(0.5 * std::log(2)));
  CHECK(of({{"nic.bandwidth", "100 Gbit/s"}}).within_node == 0);
  CHECK(of({{"nic.count", "1"}}).between_nodes == Approx(0.75 * std::sqrt(2)));
  CHECK(of({{"nic.count", "1"}, {"nic.bandwidth", "100 Gbit/s"}}).between_nodes ==
        Approx(std::hypot(0.75 * std::sqrt(2), 0.5 * std::log(2))));
  CHECK(std::isinf(of({{"nic.burst", "1 MB"}}).between_nodes));
  CHECK(of({{"nic.burst", "1 MB"}}).within_node == 0);
  CHECK(of({{"nccl.algorithms", "ring"}}).choice);
  CHECK(of({{"nccl.algorithms", "ring"}}).between_nodes == 0);
  const Departure link = of({{"node.gpu_link", "10 GB/s"}});
  CHECK(link.within_node == link.between_nodes);
  CHECK(link.keys == std::vector<std::string>{"node.gpu_link"});
}

TEST_CASE("departure: an interval widens from its calibrated width to the width without tables") {
  for (const char* name : {"perlmutter-a100", "gcp-a3-mega", "paper-eth40-v100", "aws-g4dn"}) {
    const Cluster shipped = load_cluster(name, {});
    const ProcessGroup group{4 * shipped.gpus_per_node, shipped.gpus_per_node};
    const Duration t = Duration::microseconds(1e5);
    const double own = shipped.nic_bandwidth.value.value() * 8;
    const auto width = [&](double factor) {
      const Cluster asked =
          load_cluster(name, {{"nic.bandwidth", fmt::format("{} bit/s", own * factor)}});
      const auto ends =
          interval_of(asked, Backend::nccl, Op::all_reduce, Bytes(64 << 20), group, t);
      return std::log(ends.high / ends.low);
    };
    INFO(name);
    const double unchanged = width(1);
    CHECK(width(1.0001) == Approx(unchanged).epsilon(1e-3));
    double before = unchanged;
    for (const double factor : {0.99, 0.9, 0.5, 0.1, 0.01}) {
      INFO(factor);
      const double wider = width(factor);
      CHECK(wider >= before - 1e-9);
      before = wider;
    }
  }
}

TEST_CASE(
    "departure: a description that is incomplete without overrides has an infinite departure") {
  const std::string text = cluster_text("perlmutter-a100");
  const auto line = text.find("gpu_link");
  REQUIRE(line != std::string::npos);
  std::string incomplete = text;
  incomplete.erase(line, text.find('\n', line) - line);
  const Cluster cluster = load_cluster(Table::parse(incomplete, "mine.toml"), "mine.toml",
                                       {{"node.gpu_link", "300 GB/s"}});
  CHECK(std::isinf(cluster.departure.within_node));
  CHECK_THAT(without_calibration(cluster), Contains("node.gpu_link"));
}

}  // namespace
}  // namespace lambcast
