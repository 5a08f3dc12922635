// A cluster as a description: the parts of a node, the connections between nodes, the constants of
// the communication libraries, and the source of every number.
//
// Descriptions are TOML (topologies/presets/*.toml, compiled in; or a file of the user's). The
// relevant rate is the *effective* one: a 40 Gbit/s Ethernet that iperf measures at 4.1 Gbit/s is a
// 4.1 Gbit/s network. Files state both; forecasts use `nic.bandwidth`, and each library's share of
// it, `nic_efficiency` (above 1 if several streams are faster than the one of iperf).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/base/overrides.h"
#include "sim/base/provenance.h"
#include "sim/base/table.h"
#include "sim/base/units.h"
#include "sim/base/version.h"
#include "sim/collectives/choice.h"
#include "sim/collectives/collective.h"
#include "sim/network/machine.h"
#include "topologies/calibration.h"
#include "topologies/priors.h"
#include "topologies/program_level.h"

namespace lambcast {

// Connections between the GPUs of a node: over the PCIe root; over NVLink through a switch, at full
// rate between any two; or over NVLink pair by pair. In the last case a GPU has an equal share of
// its links to each other GPU, so that few GPUs in use leave most links idle.
enum class GpuPeers { pcie, nvlink, nvlink_mesh };

// The queue of an Ethernet switch port, which drops packets beyond its depth, and TCP's minimum
// retransmission timeout.
struct PortQueueSpec {
  Sourced<Bytes> depth;
  Sourced<Duration> rto_min;
  bool operator==(const PortQueueSpec&) const = default;
};

enum class FabricKind { single_switch, fat_tree, rail_optimised, torus, dragonfly };

struct FabricSpec {
  FabricKind kind = FabricKind::single_switch;
  int nodes_per_leaf = 0;            // fat_tree, rail_optimised, dragonfly (nodes per router)
  Sourced<double> oversubscription;  // leaf downlinks over uplinks; 1: non-blocking
  std::vector<int> dimensions;       // torus
  int routers_per_group = 0;         // dragonfly
  bool operator==(const FabricSpec&) const = default;
};

// Costs of a library's protocol in addition to the wires; equation in sim/collectives/transport.h.
struct ProtocolSpec {
  std::string name;
  Sourced<Duration> base, local_hop, network_hop;  // ring and all other algorithms
  Sourced<Duration> tree_base, tree_local_hop, tree_network_hop;
  Sourced<double> efficiency;
  std::optional<Bytes> largest;
  int slices = 1;
  std::optional<Sourced<Duration>> alone_base, alone_local_hop;  // inside one node
  std::optional<Sourced<Bandwidth>> node_cap;
  std::optional<Sourced<Bandwidth>> channel_rate;  // rate of one channel of NCCL
  bool operator==(const ProtocolSpec&) const = default;
};

// Costs of an all-reduce inside the NVLink switch, available from Hopper on.
struct NvlsSpec {
  Sourced<Duration> base, network_hop;
  Sourced<double> efficiency;  // share of node.gpu_link
  Sourced<Duration> chunk;     // time added by each chunk in the switch (transport.h)
  bool operator==(const NvlsSpec&) const = default;
};

struct LibrarySpec {
  DecisionRules rules = DecisionRules::nccl;
  Sourced<double> link_efficiency;  // share of node.gpu_link; NCCL only
  Sourced<double> nic_efficiency;
  // Additional factor if only one GPU of a node is in use: its rings enter and leave through the
  // same GPU and NIC, and each step waits.
  Sourced<double> single_gpu_efficiency;
  Sourced<double> tree_efficiency;        // additional factor, for trees between nodes
  Sourced<double> all_to_all_efficiency;  // additional factor, for all_to_alls between nodes
  std::optional<Sourced<Bytes>> slice;
  Sourced<Bytes> queue_ahead;
  Sourced<Duration> message_overhead;
  Sourced<Duration> reported_latency;  // latency of a NIC, as its plugin reports it to NCCL's rule
  std::optional<Sourced<Bandwidth>> flow_cap;
  int connections = 1;
  std::string all_reduce;  // forced algorithm; empty: the library's choice
  Provenance all_reduce_from;
  // Minor version of NCCL 2, whose rule chooses the algorithm: the oldest version with the same
  // choices as the one in use.
  int minor_version = NcclTuning::newest;
  // Settings of NCCL's environment variables, as in NcclTuning.
  std::vector<std::string> algorithms;  // empty: all
  bool sharp = false;                   // NCCL_COLLNET_ENABLE
  bool pxn = true;                      // false with NCCL_PXN_DISABLE
  int min_ctas = 1, max_ctas = NcclTuning::most_channels;
  int threads = 0, ll128_threads = 0;
  Bytes tree_threshold{};
  std::vector<ProtocolSpec> protocols;
  // NCCL protocols excluded by nccl.protocols. They still serve messages between two ranks.
  std::vector<ProtocolSpec> of_messages;
  std::optional<NvlsSpec> nvls;
  bool operator==(const LibrarySpec&) const = default;
};

// Rates of copies between GPU and host memory for MPI, if the description states them; else the
// device profile applies.
struct HostCopySpec {
  std::optional<Sourced<Bandwidth>> pageable_to_host,
      pageable_to_device;                           // numpy buffers of mpi.py
  std::optional<Sourced<Bandwidth>> staged_by_mpi;  // device buffers staged by MPI (no GPUDirect)
  bool operator==(const HostCopySpec&) const = default;
};

// Measured factors of this machine's software, relative to the device profile.
struct StackSpec {
  std::string implementation;     // program of the training curves: "deepspeed", "nvidia"
  Sourced<double> compute_scale;  // factor on the profile's forward and backward times
  // Relative standard deviations of a micro batch's time, from one micro batch to the next and from
  // one GPU to another: a step waits for the slowest (models/training/price/slowest_rank.h).
  Sourced<double> compute_spread, gpu_spread;
  Sourced<double> optimizer_scale;  // factor on the memory-bound estimate of the optimizer
  // The two scales as measured on this machine, if they were. An override by a plain number keeps
  // them, so that intervals widen by its distance (models/training/price/own_scale.h).
  std::optional<double> own_compute_scale, own_optimizer_scale;
  // The program that compute_scale was measured with, a value of --framework; empty: the program of
  // the run.
  std::string scale_program;
  // Whether plain Adam ran as separate framework operations instead of one fused kernel.
  bool unfused_adam = false;
  Provenance unfused_adam_from;
  // The DeepSpeed release of these measurements; absent: the newest is forecast.
  std::optional<Sourced<Version>> deepspeed;
  // Backend of 1-bit optimizers on this machine if the run names none; absent: DeepSpeed's default.
  std::optional<Backend> backend;
  bool operator==(const StackSpec&) const = default;
};

struct Cluster {
  std::string name;
  std::string description;
  std::string device;             // name of the device profile
  std::string device_stands_for;  // GPU of the machine if it has no profile of its own; else empty
  std::string origin;             // preset name or path
  int gpus_per_node = 1;
  int max_nodes = 1 << 20;
  GpuPeers gpu_peers = GpuPeers::nvlink;
  Sourced<Bandwidth> gpu_link, gpu_nic, host_link;
  Sourced<Bandwidth> host_memory;      // rate of an optimizer's updates on all processors
  std::optional<Bytes> host_capacity;  // memory capacity of a node
  int nics = 1;
  NetworkKind network = NetworkKind::rdma;
  Sourced<Bandwidth> nic_nominal, nic_bandwidth;
  Bandwidth nic_limit;  // highest rate of a NIC (nic_limit.h)
  // The nominal rate of the description's NIC, if an override states a higher one.
  std::optional<Bandwidth> exceeded_name_plate;
  bool states_name_plate = false;  // the description states a nominal rate with its source
  Sourced<Bytes> nic_burst;  // token bucket of a port that is shaped to its bandwidth, else zero
  std::optional<PortQueueSpec> port_queue;
  FabricSpec fabric;
  LibrarySpec nccl, mpi;
  HostCopySpec host_copy;
  StackSpec stack;
  std::optional<ProgramLevel> program;  // level of the program measured on this machine
  std::optional<Sourced<double>> usd_per_gpu_hour;
  std::optional<Calibration> calibration;
  Departure departure;  // distance from the description without overrides
  bool operator==(const Cluster&) const = default;
};

// Evidence of the description that still applies to rates stated by overrides.
struct Evidence {
  std::optional<NicRate> nic{};  // nic.bandwidth
  bool link = false;             // node.gpu_link was measured
};

// Decodes a description; unknown keys, missing units and impossible values are refused with
// file:line:key. The table must be at its root.
Cluster decode_cluster(const Table& table, const std::string& origin,
                       const Priors& priors = shipped_priors(), const Evidence& evidence = {});

// Loads a preset by name, or a file by path (a name that ends in .toml or contains a '/'), and
// applies the `--set` overrides of its keys. A calibration stays with any override; departure.h
// defines which intervals widen, and by how much. An override that repeats the description changes
// nothing.
Cluster load_cluster(const std::string& name_or_path, const Overrides& overrides);
// Loads a cluster from a description that is parsed but has no overrides yet.
Cluster load_cluster(Table table, const std::string& name_or_path, const Overrides& overrides);
std::vector<std::string> cluster_names();
// Returns the text of a preset; throws Error if there is no preset of that name.
std::string cluster_text(const std::string& name);

// Returns the library's section of the description that the backend uses.
const LibrarySpec& library_of(const Cluster& cluster, Backend backend);

// Returns the transport of the backend's library between the backend's buffers.
Transport transport_of(const Cluster& cluster, Backend backend);

// Returns effective if a rate was measured or fitted, or published below the nominal one. Intervals
// depend on it: a rate set by --set is as uncertain as a nominal rate, but a library's share of it
// is that of an effective rate if the preset's own rate is effective.
NicRate nic_rate_of(const Cluster& cluster);

// Returns whether the cluster has a calibration of the backend's library.
bool has_tables(const Cluster& cluster, Backend backend);

// Returns whether the cluster has such a calibration and no override affects it for groups over
// this number of nodes.
bool is_calibrated(const Cluster& cluster, Backend backend, int nodes);

// Returns the interval of a collective: no end is shorter than the time in which the bytes that
// leave a node pass its NICs at their limit (nic_limit.h).
//
// The interval comes from the calibration of that library, if the cluster has one (calibration.h).
// Tables describe one group at a time, so a group with siblings is not calibrated. Within a node,
// NICs have no effect. If NCCL may run another algorithm, the interval spans those of both.
// Exception: tables of this machine include the algorithm that ran, so their interval is not
// widened.
CalibratedInterval interval_of(const Cluster& cluster, Backend backend, Op op, Bytes size,
                               const ProcessGroup& group, Duration forecast, const RunBy& by = {});

// Returns "not calibrated" and, if overrides changed a calibrated description, their keys.
std::string without_calibration(const Cluster& cluster);
// Returns " (--set changed KEY, KEY)"; empty if the changes do not affect groups over this number
// of nodes.
std::string changed_keys(const Cluster& cluster, int nodes);

// Returns the machine as a library sees it, with a group and its siblings; their slots must fit in
// a node. Each GPU adds its share of the node's NICs; there is at least one NIC.
Machines machines_of(const Cluster& cluster, Backend backend, const ProcessGroup& group);
int nics_in_use(const Cluster& cluster, int gpus_per_node);
// Returns the rate that a library reaches on each NIC in use: its share of the rate with NCCL's
// default number of channels, or the rate of fewer or more channels.
Bandwidth reached_nic_rate(const Cluster& cluster, const LibrarySpec& library,
                           const ProcessGroup& group);

}  // namespace lambcast
