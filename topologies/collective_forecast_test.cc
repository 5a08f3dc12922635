#include "topologies/collective_forecast.h"

#include <catch2/catch.hpp>

#include "sim/collectives/algorithms.h"

namespace lambcast {
namespace {

// To the rounding of a picosecond in each of some hundred rounds.
void check_curve(const Cluster& cluster, const CollectiveSetting& setting) {
  CollectiveSeries series = prepare(cluster, setting);
  CollectiveCurve curve = curve_of(cluster, setting);
  for (const double size : {8.0, 1000.0, 5e4, 3e5, 7e6, 1e9}) {
    INFO(cluster.name << " " << name_of(setting.op) << " " << setting.algorithm << " over "
                      << setting.group.ranks << ", " << size << " B");
    CHECK(curve.time(Bytes(size)).s() ==
          Approx(forecast(series, Bytes(size)).time.s()).epsilon(1e-6).margin(1e-9));
  }
}

TEST_CASE("collective curve: every size costs what planning it costs") {
  for (const char* preset : {"hgx-h100-ndr", "aws-p4d", "perlmutter-a100", "commodity-10gbe"}) {
    const Cluster cluster = load_cluster(preset, {});
    for (const int nodes : {1, 2, 5}) {
      CollectiveSetting setting;
      setting.group.per_node = cluster.gpus_per_node;
      setting.group.ranks = nodes * cluster.gpus_per_node;
      for (const Backend backend : {Backend::nccl, Backend::mpi_host}) {
        setting.backend = backend;
        for (std::size_t op = 0; op < op_names().size(); ++op) {
          setting.op = static_cast<Op>(op);
          setting.algorithm.clear();
          check_curve(cluster, setting);
          for (const std::string& algorithm : algorithm_names()) {
            if (algorithm.starts_with("nvls") || !supports(algorithm, setting.op, setting.group))
              continue;
            setting.algorithm = algorithm;
            check_curve(cluster, setting);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lambcast
