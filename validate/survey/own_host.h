// The description that a survey starts from when none is given, derived from the host of its first
// rank and from its launcher.
//
//   GPUs    /proc/driver/nvidia/gpus/*/information; the device preset of the same GPU
//   NICs    the fastest active ports in /sys/class/infiniband, else the fastest link in
//           /sys/class/net; without a readable speed 10 Gbit/s, which NCCL assumes too
//   ranks   processes on this host, as the launcher states them
//
// Bandwidths are nominal or assumed: the survey measures what is reached. Not derived: the fabric,
// and nodes that differ from the first.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace lambcast {

struct OwnHost {
  std::vector<std::string> gpus;  // names, such as "NVIDIA H100 80GB HBM3"
  std::string nic;                // "mlx5_0"; empty if no speed is readable
  int nics = 1;                   // of the fastest speed
  double gbit_per_s = 10;         // of each
  bool rdma = false;
  bool infiniband = false;
};

// Reads the files above below `root`, which is "/" except in tests.
OwnHost own_host(const std::filesystem::path& root);

struct DerivedCluster {
  std::string toml;      // a cluster description
  std::string sentence;  // states what was derived
};

// `ranks` is the number of the launch's processes on this host.
DerivedCluster derived_cluster(const OwnHost& host, int ranks);

}  // namespace lambcast
