// The log that NCCL writes with NCCL_DEBUG=INFO: it states releases, the network plugin, NICs and
// settings, and no rate that was reached. Line formats: NCCL 2.4 to 2.28 (src/init.cc,
// src/transport/net_ib.cc, net_socket.cc, src/misc/param.cc), aws-ofi-nccl, Google's plugins.
//
//   NCCL version 2.18.5+cuda12.2                         nccl.version
//   NET/OFI Initializing aws-ofi-nccl 1.7.1              nccl.plugin, nccl.plugin_release
//   NET/OFI Running on p5.48xlarge platform              nic.instance
//   Using network Socket | IB | FasTrak | gIB | ...      nic.network, nccl.plugin
//   NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB; ...    nic.count, nic.link_layer
//   NET/Socket : Using [0]eth0:10.0.0.1<0>               nic.count
//   ... speed=400000 ..., NET/0 (1f2/1/50.000000)        nic.nominal
//   NET/Socket: Using 2 threads and 8 sockets per thread nccl.connections
//   NCCL_ALGO set by environment to Ring                 nccl.algorithms, and so on
//
// Numbers of channels, ranks and connections of each transport are reported and set no key.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lambcast {

struct NcclLog {
  std::vector<std::pair<std::string, std::string>> keys;  // keys of a cluster
  std::string other;  // other facts: "16 coll channels, ...; 8 x P2P, 4 x NET/IB with GPUDirect"
};

// Returns whether the text contains lines of NCCL_DEBUG=INFO.
bool is_nccl_log(std::string_view text);

// Reads the lines of all ranks. A fact on which they differ sets no key and is reported.
NcclLog read_nccl_log(std::string_view text);

// A setting of NCCL's environment in the log, with the line of its first occurrence.
struct NcclSetting {
  std::string name, value;
  int line = 0;
};
std::vector<NcclSetting> settings_in_nccl_log(std::string_view text);

}  // namespace lambcast
