#include "topologies/nic_limit.h"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

double limit_Gbps(const std::string& name, const Overrides& overrides) {
  return load_cluster(name, overrides).nic_limit.value() * 8e-9;
}

// The preset commodity-100gbe describes an effective rate of 38 Gbit/s for a NIC of 100 Gbit/s.
TEST_CASE("NIC limit: the nominal rate, and the rate of --set far below the description") {
  const std::string name = "commodity-100gbe";
  CHECK(limit_Gbps(name, {}) == Approx(100));
  CHECK(limit_Gbps(name, {{"nic.nominal", "50 Gbit/s"}}) == Approx(50));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "1 Gbit/s"}}) == Approx(1));
  // With p = 1 + log10(100 / 38) = 1.420: 100 (19 / 38)^p = 37.36, and 100 (36 / 38)^p = 92.61. At
  // a tenth of the described rate or less, the limit is the rate of --set.
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "19 Gbit/s"}}) == Approx(37.36).epsilon(1e-3));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "36 Gbit/s"}}) == Approx(92.61).epsilon(1e-3));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "3.8 Gbit/s"}}) == Approx(3.8).epsilon(1e-3));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "3 Gbit/s"}}) == Approx(3));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "37.9999 Gbit/s"}}) == Approx(100).epsilon(1e-4));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "38.0001 Gbit/s"}}) == Approx(100));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "400 Gbit/s"}}) == Approx(400));
  CHECK(limit_Gbps(name, {{"nic.bandwidth", "1 Gbit/s"}, {"nic.nominal", "10 Gbit/s"}}) ==
        Approx(10));
}

// Regression: with a steeper limit, the low end of a step was 68 % longer on a NIC that is 9 %
// slower.
TEST_CASE("NIC limit: a rate that is 1 % lower changes it by at most 3 %, on any preset") {
  for (const std::string& name : cluster_names()) {
    const double described = load_cluster(name, {}).nic_bandwidth.value.value() * 8e-9;
    double last = limit_Gbps(name, {});
    for (double rate = described; rate > described / 30; rate *= 0.99) {
      const double limit =
          limit_Gbps(name, {{"nic.bandwidth", fmt::format("{:.9f} Gbit/s", rate)}});
      INFO(name << " at " << rate << " Gbit/s");
      CHECK(limit <= last * (1 + 1e-6));
      CHECK(limit >= last * 0.97);
      last = limit;
    }
  }
}

TEST_CASE("NIC limit: no end of a collective's interval is faster, on any preset") {
  for (const std::string& name : cluster_names())
    for (const Overrides& overrides :
         {Overrides{}, Overrides{{"nic.bandwidth", "1 Gbit/s"}}, Overrides{{"nic.count", "1"}}}) {
      const Cluster cluster = load_cluster(name, overrides);
      const int gpus = cluster.gpus_per_node;
      for (const ProcessGroup& group :
           {ProcessGroup{2 * gpus, gpus}, ProcessGroup{16, 1}, ProcessGroup{8, 1, 1, 1, gpus}})
        for (const Op op : {Op::all_reduce, Op::all_gather, Op::reduce_scatter, Op::all_to_all})
          for (const Backend backend : {Backend::nccl, Backend::mpi_host})
            for (const double size : {64e3, 16e6, 1e9}) {
              INFO(name << ", " << overrides.size() << " overrides, " << group.ranks << " ranks, "
                        << name_of(op) << " of " << size << " B over " << traits_of(backend).word);
              CollectiveSeries series = prepare(cluster, {op, group, backend, "", ""});
              const Collective planned = forecast(series, Bytes(size));
              const Bytes sent = planned.traffic.network_sent_per_node;
              const CalibratedInterval interval = interval_of(
                  cluster, backend, op, Bytes(size), group, planned.time, {"", "", {}, sent});
              const Duration least = least_time_on_nics(cluster, sent).scaled(1 - 1e-9);
              const bool as_described = overrides.empty();
              if (as_described) CHECK(planned.time >= least);
              CHECK(interval.low >= std::min(least, planned.time));
              CHECK(interval.high >= interval.low);
            }
    }
}

}  // namespace
}  // namespace lambcast
