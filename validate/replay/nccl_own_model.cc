#include "validate/replay/nccl_own_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "sim/base/check.h"

namespace lambcast {
namespace {

using Generation = NcclOwnMachine::Generation;
enum Protocol { ll, ll128, simple };

// LL, LL128, Simple, microseconds.
struct Latencies {
  double base[3], nvlink[3], pcie[3], network[3];
};
constexpr Latencies ring_us{{6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14}};
constexpr Latencies tree_us{{6.8, 14, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14}};

// By generation, then by one, two and more nodes; GB/s.
constexpr double tree_per_channel[3][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}};
constexpr double nvls_per_channel[3] = {0, 57.7, 45.5};  // Hopper
constexpr double ll_one_node[3] = {39, 87.7, 141};
constexpr double ll_intel[2] = {39, 20.4}, ll_amd[2] = {22.5, 19.0};  // two nodes, more
constexpr double ll128_per_channel[3] = {20, 20, 36.7};

// What a tree all-reduce reaches of its bandwidth, by log2(size / 64 B).
constexpr std::array<std::array<double, 24>, 3> tree_share{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5,
      .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

constexpr double listed_GBps[] = {48, 45, 42, 40, 30, 28, 24, 22, 20,  18,  17.5, 15,
                                  12, 10, 9,  7,  6,  5,  4,  3,  2.4, 1.2, .24,  .12};

int log2_of(double value) { return value < 1 ? -1 : static_cast<int>(std::log2(value)); }

class Model {
 public:
  Model(const NcclOwnMachine& machine, Op op, double bytes)
      : m_(machine),
        bytes_(bytes),
        reduces_all_(op == Op::all_reduce),
        ranks_(machine.nodes * machine.gpus_per_node),
        scale_(static_cast<std::size_t>(std::min(machine.nodes, 3) - 1)),
        generation_(static_cast<std::size_t>(machine.generation)) {
    const int passes = reduces_all_ ? 2 : 1;
    steps_ = op == Op::broadcast ? ranks_ : passes * (ranks_ - 1);
    network_steps_ = passes * (m_.nodes - 1);
    channels_ = m_.nodes > 1 ? 2.0 * m_.nics : (m_.generation == Generation::hopper ? 16 : 24);
    bus_ = m_.nodes > 1 ? m_.nics * m_.nic_GBps : m_.link_GBps;
  }

  double best_us() const {
    double best = std::numeric_limits<double>::infinity();
    for (const Protocol protocol : {ll, ll128, simple}) {
      if (protocol == ll128 && !m_.nvlink) continue;
      best = std::min(best, ring(protocol));
      if (reduces_all_) best = std::min(best, tree(protocol));
    }
    if (reduces_all_ && m_.generation == Generation::hopper && m_.gpus_per_node == 8)
      best = std::min(best, nvls());
    return best;
  }

 private:
  double transfer_us(double algbw_GBps) const { return bytes_ / (1000 * algbw_GBps); }

  double ll_cap() const {
    if (m_.nodes == 1) return ll_one_node[generation_];
    return (m_.amd ? ll_amd : ll_intel)[scale_ - 1];
  }

  double local_us(const Latencies& latency, Protocol protocol) const {
    return (m_.nvlink ? latency.nvlink : latency.pcie)[protocol];
  }

  double ring(Protocol protocol) const {
    const bool network = m_.nodes > 1;
    const double post = network ? (m_.amd ? 2 : 1) * (protocol == simple ? 3 : 1) : 0;
    // Fully exposed where each node has one GPU.
    const double hop = (m_.gpus_per_node == 1 ? tree_us : ring_us).network[protocol];
    double latency = ring_us.base[protocol] +
                     (steps_ - network_steps_) * std::max(local_us(ring_us, protocol), post) +
                     network_steps_ * hop;
    const double per_rank_step = bytes_ / (channels_ * ranks_);
    if (protocol == simple && reduces_all_ && network && per_rank_step >= 64)
      latency *= m_.generation == Generation::volta ? 1.9 : 1.4;
    double bus = bus_;
    if (protocol == ll) bus = std::min(ll_cap(), 0.5 * bus_);
    if (protocol == ll128) bus = std::min(0.92 * bus_, channels_ * ll128_per_channel[generation_]);
    return latency + transfer_us(bus * ranks_ / steps_);
  }

  double tree(Protocol protocol) const {
    const double latency =
        tree_us.base[protocol] + 2 * ((m_.gpus_per_node - 1) * local_us(tree_us, protocol) +
                                      log2_of(m_.nodes) * tree_us.network[protocol]);
    double bus = std::min(0.92 * bus_, channels_ * tree_per_channel[generation_][scale_]);
    if (protocol == ll) bus = std::min(bus_ / 3.8, ll_cap());
    if (protocol == ll128)
      bus = std::min(bus_ * (m_.nodes == 1 ? 7.0 / 9 : 0.9375),
                     channels_ * ll128_per_channel[generation_]);
    const int at = log2_of(bytes_ / 64);
    const auto& shares = tree_share[static_cast<std::size_t>(protocol)];
    const double share = at >= 0 && at < 24 ? shares[static_cast<std::size_t>(at)] : 1;
    return latency + transfer_us(0.5 * bus * share);
  }

  double nvls() const {
    const double channels = 16;
    const double inside = m_.link_GBps / channels * 0.85 * (channels - 1) / channels * 2;
    double per_channel = inside, latency = 25;
    if (m_.nodes > 1) {
      const double between = m_.nics * m_.nic_GBps / channels * (m_.nodes == 2 ? 2 : 1);
      per_channel = std::min({inside, between, nvls_per_channel[scale_]});
      latency += 2 * log2_of(m_.nodes) * 20.9;
    }
    return latency + transfer_us(channels * per_channel * ranks_ / steps_);
  }

  const NcclOwnMachine& m_;
  double bytes_;
  bool reduces_all_;
  int ranks_;
  std::size_t scale_, generation_;
  double steps_ = 0, network_steps_ = 0, channels_ = 0, bus_ = 0;
};

}  // namespace

NcclOwnMachine nccl_own_machine(const Cluster& cluster, int nodes, int gpus_per_node) {
  NcclOwnMachine machine;
  machine.generation = cluster.device.starts_with("v")   ? Generation::volta
                       : cluster.device.starts_with("a") ? Generation::ampere
                                                         : Generation::hopper;
  machine.nodes = nodes;
  machine.gpus_per_node = gpus_per_node;
  machine.nics = std::min(gpus_per_node, nics_in_use(cluster, gpus_per_node));
  const double all_links[] = {120, 240, 370.8};  // 6, 12 and 18 links at 20, 20 and 20.6 GB/s
  machine.link_GBps = all_links[static_cast<std::size_t>(machine.generation)];
  if (cluster.gpu_peers == GpuPeers::nvlink_mesh)
    machine.link_GBps *= (gpus_per_node - 1.0) / (cluster.gpus_per_node - 1);
  machine.nvlink = cluster.gpu_peers != GpuPeers::pcie;
  if (!machine.nvlink) machine.link_GBps = machine.generation == Generation::volta ? 12 : 24;
  // Bundles of slower NICs count as one.
  const double nominal =
      cluster.nic_nominal.value.value() * 1e-9 * nics_in_use(cluster, gpus_per_node) / machine.nics;
  machine.nic_GBps = *std::find_if(std::begin(listed_GBps), std::end(listed_GBps) - 1,
                                   [&](double step) { return step <= nominal; });
  machine.amd = machine.generation == Generation::ampere;
  return machine;
}

Duration nccl_own_time(const NcclOwnMachine& machine, Op op, Bytes size) {
  LAMBCAST_CHECK(op != Op::all_to_all && op != Op::send_recv,
                 "NCCL's model leaves all-to-all and send_recv out");
  return Duration::microseconds(Model(machine, op, size.value()).best_us());
}

}  // namespace lambcast
