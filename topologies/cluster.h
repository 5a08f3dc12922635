// A cluster as a description: what a node holds, how nodes are joined, what the communication
// libraries make of it, and where every one of these numbers comes from.
//
// Descriptions are TOML (topologies/presets/*.toml, compiled in; or a file of the user's). The rate
// that matters is the *effective* one: a 40 Gbit/s Ethernet that iperf measures at 4.1 Gbit/s is a
// 4.1 Gbit/s network. Files carry both; forecasts use `nic.bandwidth`, and each library's share of
// it, `nic_efficiency` (above 1 where several streams outdo the one that iperf used).
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

// How the GPUs of a node reach one another: over the PCIe root; over NVLink through a switch, each
// with its full rate to any other; or over NVLink pair by pair, where a GPU has only an equal share
// of its links to each other GPU, and few GPUs in use leave most of them idle.
enum class GpuPeers { pcie, nvlink, nvlink_mesh };

// The queue before a port of an Ethernet switch, which drops what it cannot hold, and how long TCP
// at least waits before it sends again what nobody acknowledged.
struct PortQueueSpec {
  Sourced<Bytes> depth;
  Sourced<Duration> rto_min;
  bool operator==(const PortQueueSpec&) const = default;
};

enum class FabricKind { single_switch, fat_tree, rail_optimised, torus, dragonfly };

struct FabricSpec {
  FabricKind kind = FabricKind::single_switch;
  int nodes_per_leaf = 0;            // fat_tree, rail_optimised, dragonfly (nodes per router)
  Sourced<double> oversubscription;  // leaf downlinks over uplinks; 1 blocks nothing
  std::vector<int> dimensions;       // torus
  int routers_per_group = 0;         // dragonfly
  bool operator==(const FabricSpec&) const = default;
};

// Costs that a library adds to the wires; see sim/collectives/transport.h for the equation.
struct ProtocolSpec {
  std::string name;
  Sourced<Duration> base, local_hop, network_hop;  // ring and everything else
  Sourced<Duration> tree_base, tree_local_hop, tree_network_hop;
  Sourced<double> efficiency;
  std::optional<Bytes> largest;
  int slices = 1;
  std::optional<Sourced<Duration>> alone_base, alone_local_hop;  // inside one node
  std::optional<Sourced<Bandwidth>> node_cap;
  std::optional<Sourced<Bandwidth>> channel_rate;  // of one channel of NCCL
  bool operator==(const ProtocolSpec&) const = default;
};

// All-reduce inside the NVLink switch, which Hopper and later have.
struct NvlsSpec {
  Sourced<Duration> base, network_hop;
  Sourced<double> efficiency;  // share of node.gpu_link
  Sourced<Duration> chunk;     // each chunk in the switch adds it (transport.h)
  bool operator==(const NvlsSpec&) const = default;
};

struct LibrarySpec {
  DecisionRules rules = DecisionRules::nccl;
  Sourced<double> link_efficiency;  // share of node.gpu_link; NCCL only
  Sourced<double> nic_efficiency;
  // A further share where one GPU of a node is in use: its rings come in and go out through the
  // same GPU and NIC, each step with its own wait.
  Sourced<double> single_gpu_efficiency;
  Sourced<double> tree_efficiency;        // a further share, of trees between nodes
  Sourced<double> all_to_all_efficiency;  // a further share, of all_to_alls between nodes
  std::optional<Sourced<Bytes>> slice;
  Sourced<Bytes> queue_ahead;
  Sourced<Duration> message_overhead;
  Sourced<Duration> reported_latency;  // of a NIC, by its plugin, to NCCL's rule alone
  std::optional<Sourced<Bandwidth>> flow_cap;
  int connections = 1;
  std::string all_reduce;  // forced algorithm, empty: the library's choice
  Provenance all_reduce_from;
  // Minor version of NCCL 2, whose rule chooses the algorithm: the oldest that chooses as the
  // running one does.
  int minor_version = NcclTuning::newest;
  // Environment variables of NCCL, as NcclTuning has them.
  std::vector<std::string> algorithms;  // empty: all
  bool sharp = false;                   // NCCL_COLLNET_ENABLE
  bool pxn = true;                      // not NCCL_PXN_DISABLE
  int min_ctas = 1, max_ctas = NcclTuning::most_channels;
  int threads = 0, ll128_threads = 0;
  Bytes tree_threshold{};
  std::vector<ProtocolSpec> protocols;
  // NCCL protocols that nccl.protocols left out. They do not apply to messages between two ranks.
  std::vector<ProtocolSpec> of_messages;
  std::optional<NvlsSpec> nvls;
  bool operator==(const LibrarySpec&) const = default;
};

// How fast the machine copies between GPU and host memory on behalf of MPI, where the description
// says so; else the device profile decides.
struct HostCopySpec {
  std::optional<Sourced<Bandwidth>> pageable_to_host,
      pageable_to_device;                           // numpy buffers of mpi.py
  std::optional<Sourced<Bandwidth>> staged_by_mpi;  // device buffers that MPI stages (no GPUDirect)
  bool operator==(const HostCopySpec&) const = default;
};

// Measured factors of the software on this machine, relative to the device profile.
struct StackSpec {
  std::string implementation;     // whose training curves to use: "deepspeed", "nvidia"
  Sourced<double> compute_scale;  // times the profile's forward and backward
  // Relative standard deviations of the time of a micro batch, from one to the next and from one
  // GPU to another: a step waits for the slowest (models/training/price/slowest_rank.h).
  Sourced<double> compute_spread, gpu_spread;
  Sourced<double> optimizer_scale;  // times the memory-bound estimate of the optimizer
  // The two scales as a figure of this machine set them, if one did. An override by a plain number
  // keeps them, so that intervals widen by its distance (models/training/price/own_scale.h).
  std::optional<double> own_compute_scale, own_optimizer_scale;
  // The program whose figure set compute_scale, a word of --framework; empty: the one that runs.
  std::string scale_program;
  // Whether plain Adam ran as separate framework operations rather than one fused kernel.
  bool unfused_adam = false;
  Provenance unfused_adam_from;
  // The release of DeepSpeed that ran there; else the newest is forecast.
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
  Sourced<Bandwidth> host_memory;      // what an optimizer's updates on all processors reach of it
  std::optional<Bytes> host_capacity;  // of a node's memory
  int nics = 1;
  NetworkKind network = NetworkKind::rdma;
  Sourced<Bandwidth> nic_nominal, nic_bandwidth;
  Bandwidth nic_limit;  // the most that a NIC carries (nic_limit.h)
  // The name plate of the description's NIC, if an override states a higher rate.
  std::optional<Bandwidth> exceeded_name_plate;
  bool states_name_plate = false;  // the description, without overrides, has it from a source
  Sourced<Bytes>
      nic_burst;  // the token bucket of a port that is shaped to its bandwidth, else zero
  std::optional<PortQueueSpec> port_queue;
  FabricSpec fabric;
  LibrarySpec nccl, mpi;
  HostCopySpec host_copy;
  StackSpec stack;
  std::optional<ProgramLevel> program;  // the program that was measured on this machine
  std::optional<Sourced<double>> usd_per_gpu_hour;
  std::optional<Calibration> calibration;
  Departure departure;  // from what the description says without overrides
  bool operator==(const Cluster&) const = default;
};

// Evidence that stays in force for rates that overrides state.
struct Evidence {
  std::optional<NicRate> nic{};  // nic.bandwidth
  bool link = false;             // node.gpu_link was measured
};

// Decodes a description; unknown keys, missing units and impossible values are refused with
// file:line:key. The table must be at its root.
Cluster decode_cluster(const Table& table, const std::string& origin,
                       const Priors& priors = shipped_priors(), const Evidence& evidence = {});

// Loads a preset by name, or a file by path (a name that ends in .toml or holds a '/'), after
// applying the `--set` overrides of its keys. A calibration stays under any override; departure.h
// defines which intervals widen, and by how much. An override that repeats the description changes
// nothing.
Cluster load_cluster(const std::string& name_or_path, const Overrides& overrides);
// The same of a description that was parsed already and has nothing set.
Cluster load_cluster(Table table, const std::string& name_or_path, const Overrides& overrides);
std::vector<std::string> cluster_names();
// The text of a preset; throws Error when there is none of that name.
std::string cluster_text(const std::string& name);

// Returns the library of the backend.
const LibrarySpec& library_of(const Cluster& cluster, Backend backend);

// The transport of its library, from the point of view of its buffers.
Transport transport_of(const Cluster& cluster, Backend backend);

// Returns effective if a rate was measured or fitted, or published below the nominal one. Intervals
// depend on it: a rate asked for by --set is as uncertain as a nominal rate, but a library's share
// of it is that of an effective rate if the preset's own rate is one.
NicRate nic_rate_of(const Cluster& cluster);

// Whether the cluster has a calibration of the backend's library.
bool has_tables(const Cluster& cluster, Backend backend);

// Whether the cluster has a calibration of the backend's library that no override bears on, for
// groups of so many nodes.
bool is_calibrated(const Cluster& cluster, Backend backend, int nodes);

// Returns the interval of a collective: no end is shorter than the time in which the bytes that
// leave a node pass its NICs at their limit (nic_limit.h).
//
// By the calibration of that library, if the cluster has one (calibration.h). Tables are of one
// group at a time, so with siblings nothing is calibrated. Within a node nothing depends on what is
// known of the NICs. Where NCCL may run something else, from the lower of both low ends to the
// higher of the high ones; but tables of this machine have it whatever ran, and what tables say of
// what is taken to run is not widened by a guess at the other.
CalibratedInterval interval_of(const Cluster& cluster, Backend backend, Op op, Bytes size,
                               const ProcessGroup& group, Duration forecast, const RunBy& by = {});

// "not calibrated", with the keys that overrides changed in what a calibration stood on.
std::string without_calibration(const Cluster& cluster);
// " (--set changed KEY, KEY)"; empty if that bears on no group over so many nodes.
std::string changed_keys(const Cluster& cluster, int nodes);

// The machine that a library sees with a group and its siblings on it; their slots must fit a node.
// GPUs bring their share of the node's NICs, at least one.
Machines machines_of(const Cluster& cluster, Backend backend, const ProcessGroup& group);
int nics_in_use(const Cluster& cluster, int gpus_per_node);
// Returns the rate that a library reaches on each NIC in use: its share for NCCL's own number of
// channels, or the rate that fewer or more channels carry.
Bandwidth reached_nic_rate(const Cluster& cluster, const LibrarySpec& library,
                           const ProcessGroup& group);

}  // namespace lambcast
