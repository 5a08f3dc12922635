#include <catch2/catch.hpp>
#include <tuple>

#include "topologies/collective_forecast.h"

namespace lambcast {
namespace {

TEST_CASE("cluster: within a node, NICs and fabric have no effect, on any preset") {
  for (const std::string& name : cluster_names()) {
    const Cluster shipped = load_cluster(name, {});
    const int gpus = shipped.gpus_per_node;
    for (const auto& [key, value] : Overrides{{"nic.bandwidth", "1 Gbit/s"},
                                              {"nic.bandwidth", "3000 Gbit/s"},
                                              {"nic.nominal", "3000 Gbit/s"},
                                              {"nic.count", "2"},
                                              {"nic.burst", "1 MB"},
                                              {"nic.link_layer", "ethernet"},
                                              {"fabric", "{ kind = 'single-switch' }"}}) {
      const Cluster changed = load_cluster(name, {{key, value}});
      for (const Op op : {Op::all_reduce, Op::all_gather, Op::all_to_all})
        for (const Backend backend : {Backend::nccl, Backend::mpi_host})
          for (const double size : {4e3, 1e6, 1e9}) {
            INFO(name << " " << key << " " << name_of(op) << " " << size);
            const auto ends = [&](const Cluster& cluster) {
              const CollectiveSetting setting{op, {gpus, gpus}, backend, "", ""};
              CollectiveSeries series = prepare(cluster, setting);
              const Duration time = forecast(series, Bytes(size)).time;
              const auto [low, high, calibrated, ground] =
                  interval_of(cluster, backend, op, Bytes(size), setting.group, time);
              return std::tuple(time, low, high, calibrated, ground);
            };
            CHECK(ends(changed) == ends(shipped));
          }
    }
  }
}

TEST_CASE("cluster: a changed NIC affects only groups over several nodes") {
  const Cluster changed = load_cluster("hgx-h100-ndr", {{"nic.bandwidth", "10 Gbit/s"}});
  CHECK(is_calibrated(changed, Backend::nccl, 1));
  CHECK_FALSE(is_calibrated(changed, Backend::nccl, 2));
  CHECK(changed.calibration == load_cluster("hgx-h100-ndr", {}).calibration);
  CHECK_FALSE(is_calibrated(
      load_cluster("hgx-h100-ndr", {{"nic.bandwidth", "10 Gbit/s"}, {"node.gpu_link", "100 GB/s"}}),
      Backend::nccl, 1));
  // Constants that a description leaves out depend on the kind of network.
  CHECK_FALSE(
      is_calibrated(load_cluster("v100-pcie-4", {{"nic.network", "socket"}}), Backend::nccl, 1));
}

}  // namespace
}  // namespace lambcast
