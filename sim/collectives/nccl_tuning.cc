#include "sim/collectives/nccl_tuning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>

namespace lambcast {
namespace {

enum WireProtocol { ll, ll128, simple };
constexpr WireProtocol protocols[] = {ll, ll128, simple};

// Latencies of LL, LL128 and Simple in microseconds.
struct PathLatencies {
  double base[3], nvlink[3], pcie[3], network[3];
};

// Constants that changed between versions.
struct Version {
  int from;  // first minor version
  PathLatencies ring, tree;
  double ll_share;          // LL's share of a ring's bandwidth over several nodes
  double ll_slower_inside;  // factor of a ring's local hops under LL over several nodes
  bool posting;             // the cost of posting a message bounds a ring's hops
  bool modern_caps;         // Hopper has constants of its own
};
constexpr PathLatencies ring_of_2_12{
    {3.6, 10, 8.4}, {.47, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 28}},
    ring_of_2_14{{3.6, 10, 8.4}, {.47, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 9.6}},
    ring_of_2_18{{6.6, 14, 8.4}, {0.6, 1.9, 3.4}, {1.0, 2.5, 5.7}, {2.7, 4.0, 14}},
    tree_of_2_12{{4.4, 4.4, 0}, {.52, 1.25, 28}, {1.0, 1.9, 28}, {5.0, 8.5, 28}},
    tree_of_2_18{{6.8, 14, 0}, {0.6, 1.25, 4.0}, {1.0, 1.9, 6.0}, {5.0, 8.5, 14}},
    tree_of_2_19{{6.8, 14, 0}, {0.6, 1.25, 28}, {1.0, 1.9, 28}, {5.0, 8.5, 28}},
    tree_of_2_23{{6.8, 14, 8.4}, {0.6, 1.25, 4.0}, {1.0, 1.9, 4.0}, {5.0, 8.5, 14}};
constexpr Version versions[] = {{12, ring_of_2_12, tree_of_2_12, .25, 1.8, false, false},
                                {14, ring_of_2_14, tree_of_2_12, .25, 1.8, false, false},
                                {18, ring_of_2_18, tree_of_2_18, .25, 1, true, true},
                                {19, ring_of_2_18, tree_of_2_19, .25, 1, true, true},
                                {21, ring_of_2_18, tree_of_2_19, .5, 1, true, true},
                                {23, ring_of_2_18, tree_of_2_23, .5, 1, true, true}};

// Rates in GB/s, by GPU, then for one, two and more nodes.
constexpr double tree_per_channel[4][3] = {
    {26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}, {70, 42.8, 24}};
constexpr double nvls_per_channel[4][3] = {{}, {}, {0, 57.7, 45.5}, {0, 96, 43.8}};
constexpr double ll_one_node[4] = {39, 87.7, 141, 282};
constexpr double ll_intel[2] = {39, 20.4}, ll_amd[2] = {22.5, 19.0};  // GB/s on two nodes, on more
constexpr double ll128_per_channel[4] = {20, 20, 36.7, 73.4};
constexpr double nvls_efficiency[4] = {0, 0, 0.85, 0.74};

// Share of its bandwidth that a tree all-reduce reaches, by log2(size / 64 B).
constexpr std::array<std::array<double, 23>, 3> tree_share{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9}}};

// Rates that the topology search tries for a channel between nodes, in GB/s, descending.
constexpr double steps_to_ampere[] = {48, 30, 28, 24, 20, 18,  15,  12,  10, 9,
                                      7,  6,  5,  4,  3,  2.4, 1.2, .24, .12};
constexpr double steps_of_hopper[] = {48, 45, 42, 40, 30,  24,  22,  20, 17.5,
                                      15, 12, 6,  3,  2.4, 1.2, .24, .12};
constexpr double steps_of_blackwell[] = {96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                         17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12};

std::span<const double> steps_of(NcclTuning::Gpu gpu) {
  if (gpu == NcclTuning::Gpu::blackwell) return steps_of_blackwell;
  if (gpu == NcclTuning::Gpu::hopper) return steps_of_hopper;
  return steps_to_ampere;
}

int log2_of(double value) { return value < 1 ? -1 : static_cast<int>(std::log2(value)); }

const Version& version_of(int minor) {
  const Version* found = std::begin(versions);
  for (const Version& version : versions)
    if (version.from <= minor) found = &version;
  return *found;
}

int nics_of(const NcclTuning& tuning, int local) {
  return std::max(1, tuning.nics * local / tuning.gpus_per_node);
}

// Returns the number of rings between nodes. Several slow NICs bundled for one GPU count as one.
int lanes_of(const NcclTuning& tuning, int local) {
  return std::min(nics_of(tuning, local), local);
}

constexpr double pcie_3_GBps = 12;

// Returns the highest speed in NCCL's list that the NICs of one ring between nodes reach.
std::span<const double>::iterator listed_speed(const NcclTuning& tuning, int local) {
  const double nominal = tuning.nic_GBps * nics_of(tuning, local) / lanes_of(tuning, local);
  const auto steps = steps_of(tuning.gpu);
  return std::find_if(steps.begin(), steps.end() - 1,
                      [&](double listed) { return listed <= nominal * 1.001; });
}

int channels_inside(const NcclTuning& tuning) {
  const int standard = !tuning.nvlink ? 2 : tuning.gpu >= NcclTuning::Gpu::hopper ? 16 : 24;
  return std::clamp(standard, tuning.min_ctas, tuning.max_ctas);
}

int nvls_channels(NcclTuning::Gpu gpu, int nodes) {
  if (gpu != NcclTuning::Gpu::blackwell) return 16;
  return nodes > 1 ? 32 : 24;
}

// Returns the number of channels between nodes: four per fast NIC from Hopper on, if there are few
// (src/graph/connect.cc).
int channels_between(const NcclTuning& tuning, int local) {
  const int used = nccl_channels(tuning, local).used, lanes = lanes_of(tuning, local);
  const double of_lane = tuning.nic_GBps * nics_of(tuning, local) / lanes;
  const bool doubled = tuning.gpu >= NcclTuning::Gpu::hopper && of_lane > 45 && used < 16;
  return doubled ? std::min(2 * used, std::max(used, tuning.max_ctas)) : used;
}

class Model {
 public:
  Model(const NcclTuning& tuning, Op op, double bytes, int nodes, int local)
      : of_(tuning),
        version_(version_of(tuning.minor)),
        bytes_(bytes),
        reduces_all_(op == Op::all_reduce),
        nodes_(nodes),
        local_(local),
        ranks_(nodes * local),
        scale_(static_cast<std::size_t>(std::min(nodes, 3) - 1)),
        gpu_(static_cast<std::size_t>(tuning.gpu)) {
    const int passes = reduces_all_ ? 2 : 1;
    steps_ = op == Op::broadcast || op == Op::reduce ? ranks_ : passes * (ranks_ - 1);
    network_steps_ = passes * (nodes - 1);
    if (tuning.minor < 23 && reduces_all_ && nodes > 1) network_steps_ = 2 * nodes;
    inside_ = tuning.link_GBps;
    // A single GPU still counts as having a link, so that all rates stay above zero.
    if (tuning.mesh && tuning.gpus_per_node > 1)
      inside_ *= std::max(1.0, local - 1.0) / (tuning.gpus_per_node - 1);
    lanes_ = lanes_of(tuning, local);
    const auto step = listed_speed(tuning, local);
    step_ = *step;
    // The search raises the rate inside the node to up to twice that between nodes.
    auto raised = step;
    while (raised != steps_of(tuning.gpu).begin() && *raised < 2 * step_) --raised;
    raised_ = *raised;
    const NcclChannels between = nccl_channels(tuning, local);
    channels_ = nodes > 1 ? between.used : channels_inside(tuning);
    // The search finds wide channels as two halves, except on Hopper and later if there are many
    // channels (src/graph/search.cc, ncclTopoDupChannels).
    const bool halves = step_ >= 25 && (gpu_ < 2 || step_ >= 50 || lanes_ <= 4);
    searched_ = nodes > 1 ? std::min(lanes_ * (halves ? 2.0 : 1.0), channels_) : channels_;
    bus_ = nodes > 1 ? lanes_ * step_ *
                           std::min(1.0, static_cast<double>(between.used) / between.standard)
                     : inside_;
  }

  bool allows(WireProtocol protocol) const {
    if (protocol == ll) return of_.ll;
    return protocol == ll128 ? of_.ll128 && of_.nvlink : of_.simple;
  }

  double ring(WireProtocol protocol) const {
    const bool network = nodes_ > 1;
    const PathLatencies& us = version_.ring;
    const double post =
        network && version_.posting ? (of_.amd ? 2 : 1) * (protocol == simple ? 3 : 1) : 0;
    double local = local_us(us, protocol);
    if (network && protocol == ll) local *= version_.ll_slower_inside;
    // Latencies are fully exposed if each node has one GPU.
    const bool exposed = local_ == 1 && of_.minor >= 23;
    const double hop = (exposed ? version_.tree : us).network[protocol] + reported_us(protocol);
    double latency = us.base[protocol] + (steps_ - network_steps_) * std::max(local, post) +
                     network_steps_ * hop;
    if (protocol == simple && reduces_all_ && network && on_plateau())
      latency *= of_.minor < 18 || gpu_ == 0 ? 1.9 : 1.4;
    double bus = bus_;
    if (of_.minor < 18 && gpu_ == 1) bus = std::min(bus, 235.0);
    if (protocol == ll) bus = std::min(ll_cap(), bus * version_.ll_share);
    if (protocol == ll128)
      bus = std::min((local_ == 1 && of_.minor < 23 ? 0.7 : 0.92) * bus,
                     searched_ * ll128_per_channel[gpu_of_caps()]);
    return latency + transfer_us(bus * ranks_ / steps_);
  }

  double tree(WireProtocol protocol) const {
    const PathLatencies& us = version_.tree;
    const double hop = us.network[protocol] + reported_us(protocol);
    const double latency =
        us.base[protocol] + 2 * ((local_ - 1) * local_us(us, protocol) + log2_of(nodes_) * hop);
    const double raw = nodes_ == 2 ? lanes_ * raised_ : bus_;
    double bus = std::min(0.92 * (local_ > 1 ? std::min(raw, inside_) : raw),
                          searched_ * tree_per_channel[gpu_of_caps()][scale_]);
    if (protocol == ll) bus = std::min(bus / 3.8, ll_cap());
    if (protocol == ll128)
      bus = std::min(bus * (nodes_ == 1 ? 7.0 / 9 : 0.9375),
                     searched_ * ll128_per_channel[gpu_of_caps()]);
    const int at = log2_of(bytes_ / 64);
    const auto& shares = tree_share[static_cast<std::size_t>(protocol)];
    const double share = at >= 0 && at < 23 ? shares[static_cast<std::size_t>(at)] : 1;
    return latency + transfer_us(0.5 * bus * share);
  }

  // Time of NVLS. Several nodes are joined by trees if `trees`, else by switches that reduce.
  double nvls(bool trees) const {
    const double channels = nvls_channels(of_.gpu, nodes_);
    const double inside =
        inside_ / channels * nvls_efficiency[gpu_] * (channels - 1) / channels * 2;
    const double between = lanes_ * step_ / channels;
    double latency = 25;
    const double reported = of_.minor < 19 ? 0 : reported_us(simple);
    if (nodes_ > 1)
      latency +=
          trees ? 2 * log2_of(nodes_) * ((of_.minor < 28 ? 14 : 20.9) + reported) : 18 + reported;
    if (of_.minor < 28) {
      const double per_channel =
          nodes_ == 1 ? inside_ / channels
                      : std::min(inside_ / channels, trees && nodes_ > 2 ? between / 2 : between);
      return latency + transfer_us(channels * per_channel * 5 / 6);
    }
    double per_channel = inside;
    if (nodes_ > 1)
      per_channel =
          trees
              ? std::min({inside, between * (nodes_ == 2 ? 2 : 1), nvls_per_channel[gpu_][scale_]})
              : std::min(inside, between);
    return latency + transfer_us(channels * per_channel * ranks_ / steps_);
  }

  // Only half of the rate found by the search counts, although each NIC sends its part once.
  double collnet_direct() const {
    const bool old = of_.minor < 19;
    const double latency =
        2 * (std::min(1, local_ - 1) * (old ? 8.0 : 3.7) + (local_ - 1) * (old ? 0.5 : 0.4)) +
        (old ? 10.7 : 31) + reported_us(simple);
    const double gpus_per_nic = static_cast<double>(local_) / lanes_;
    double bus = lanes_ * raised_ / (gpus_per_nic - (gpus_per_nic - 1) / 2);
    if (gpu_ >= 2 && of_.minor >= 18) bus *= 0.85;
    return latency + transfer_us(0.5 * bus);
  }

  double collnet_chain() const {
    double local = of_.minor < 19 ? 8.0 : 2.8, network = of_.minor < 19 ? 14 : 30;
    if (of_.minor == 18 && of_.nvlink) local = 4.75;
    double bus = std::min(lanes_ * raised_, local_ > 1 ? inside_ : lanes_ * raised_);
    if (of_.minor < 18) {
      network = 0;
      bus *= 0.75;
    }
    const double reported = of_.minor < 18 ? 0 : reported_us(simple);
    return 2 * (local_ - 1) * local + network + reported + transfer_us(0.5 * bus);
  }

  bool has_collnet() const {
    return of_.sharp && nodes_ > 1 && of_.minor >= NcclTuning::first_with_collnet &&
           local_ <= NcclTuning::most_of_collnet && of_.simple;
  }
  bool has_nvswitch() const { return of_.nvlink && !of_.mesh; }

  bool has_nvls() const { return of_.in_switch && of_.minor >= 18 && local_ > 1 && of_.simple; }

 private:
  double transfer_us(double algbw_GBps) const { return bytes_ / (1000 * algbw_GBps); }

  std::size_t gpu_of_caps() const {
    return version_.modern_caps ? gpu_ : std::min<std::size_t>(gpu_, 1);
  }

  bool on_plateau() const {
    return of_.minor < 18 ? bytes_ >= ranks_ / 16.0 * 65536 : bytes_ / (channels_ * ranks_) >= 64;
  }

  double ll_cap() const {
    if (nodes_ == 1) return ll_one_node[gpu_of_caps()];
    return (of_.amd ? ll_amd : ll_intel)[scale_ - 1];
  }

  // Returns the reported latency, doubled for Simple, which also flushes received data.
  double reported_us(WireProtocol protocol) const {
    return of_.nic_latency.us() * (protocol == simple ? 2 : 1);
  }

  double local_us(const PathLatencies& us, WireProtocol protocol) const {
    return (of_.nvlink ? us.nvlink : us.pcie)[protocol];
  }

  const NcclTuning& of_;
  const Version& version_;
  double bytes_;
  bool reduces_all_;
  int nodes_, local_, ranks_;
  std::size_t scale_, gpu_;
  double steps_ = 0, network_steps_ = 0;
  double inside_ = 0;  // rate of one GPU's links, GB/s
  int lanes_ = 1;      // rings between nodes
  double step_ = 0, raised_ = 0;
  double channels_ = 0;  // channels in use, twice the number found by the search
  double searched_ = 0;  // channels that the rates per channel apply to
  double bus_ = 0;
};

}  // namespace

NcclChannels nccl_channels(const NcclTuning& tuning, int gpus_per_node) {
  const int standard = 2 * lanes_of(tuning, gpus_per_node);
  return {standard, std::clamp(standard, tuning.min_ctas, tuning.max_ctas)};
}

double nccl_channels_of_a_lane(const NcclTuning& tuning, int gpus_per_node) {
  return static_cast<double>(channels_between(tuning, gpus_per_node)) /
         lanes_of(tuning, gpus_per_node);
}

int nccl_channels_for(const NcclTuning& tuning, std::string_view protocol, bool ring, Bytes size,
                      int nodes, int gpus_per_node) {
  const int all = nodes > 1 ? channels_between(tuning, gpus_per_node) : channels_inside(tuning);
  int threads = tuning.threads > 0 ? tuning.threads : 512;
  double bytes_of_each = 8;
  if (protocol == "LL128") {
    threads = tuning.ll128_threads > 0 ? tuning.ll128_threads : 640;
  } else if (protocol == "LL") {
    if (ring) bytes_of_each *= nodes * gpus_per_node;
  } else {
    bytes_of_each = 64;
    if (ring && tuning.threads == 0 && tuning.link_GBps <= pcie_3_GBps) threads = 256;
  }
  const double shares = size.value() / (bytes_of_each * threads);
  return shares < all ? std::max(1, static_cast<int>(shares)) : all;
}

double nvls_chunks(const NcclTuning& tuning, Bytes size, int nodes, int gpus_per_node) {
  constexpr int most_heads = 32;
  constexpr double kib = 1024;
  // A chunk size in KiB, and the number of its rounds from which it is used.
  struct Step {
    int kib, rounds;
  };
  static constexpr Step inside[] = {{16, 0}, {32, 2}, {64, 8}, {128, 64}},
                        between[] = {{32, 0}, {64, 1}, {128, 4}};
  const std::span<const Step> steps = nodes == 1  ? std::span<const Step>(inside)
                                      : nodes < 4 ? std::span<const Step>(between)
                                                  : std::span<const Step>(between).first(2);
  const double at_once =
      nvls_channels(tuning.gpu, nodes) * std::min(gpus_per_node, most_heads) * kib;
  double chunk = 0;
  for (const Step& step : steps)
    if (size.value() >= step.rounds * at_once * step.kib) chunk = step.kib * kib;
  return size.value() / chunk;
}

int nccl_choices_since(int minor, bool in_switch) {
  if (minor < NcclTuning::oldest) return minor;
  if (in_switch && minor >= NcclTuning::newest) return NcclTuning::newest;
  return version_of(minor).from;
}

std::vector<NcclChoice> nccl_choices(const NcclTuning& tuning, Op op, Bytes size, int nodes,
                                     int gpus_per_node) {
  std::vector<NcclChoice> choices;
  if (op == Op::all_to_all || op == Op::send_recv) return choices;
  const Model model(tuning, op, size.value(), nodes, gpus_per_node);
  const auto add = [&](std::string_view name, auto time_us) {
    double best = std::numeric_limits<double>::infinity();
    for (const WireProtocol protocol : protocols)
      if (model.allows(protocol)) best = std::min(best, time_us(protocol));
    choices.push_back({name, Duration::microseconds(best)});
  };
  const bool reduces_all = op == Op::all_reduce, several = nodes > 1;
  const bool by_size = reduces_all && several && tuning.tree_threshold.value() > 0;
  const bool small = size < tuning.tree_threshold;
  if (!reduces_all || (tuning.ring && !(by_size && small)))
    add("ring", [&](WireProtocol protocol) { return model.ring(protocol); });
  if (reduces_all && several && tuning.tree && !(by_size && !small))
    add("tree", [&](WireProtocol protocol) { return model.tree(protocol); });
  const auto add_simple = [&](std::string_view name, bool allowed, double us) {
    if (allowed && reduces_all && !by_size) choices.push_back({name, Duration::microseconds(us)});
  };
  const bool switches = model.has_collnet();
  if (model.has_nvls()) {
    add_simple("nvls_tree", several && tuning.nvls_tree, model.nvls(true));
    add_simple("nvls", (!several || switches) && tuning.nvls, model.nvls(false));
  }
  if (switches) {
    add_simple("collnet_direct", model.has_nvswitch() && tuning.collnet_direct,
               model.collnet_direct());
    add_simple("collnet_chain", tuning.collnet_chain, model.collnet_chain());
  }
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  return choices;
}

bool lists_other_speed(const NcclTuning& tuning, int gpus_per_node, double factor) {
  NcclTuning beside = tuning;
  beside.nic_GBps *= factor;
  return listed_speed(beside, gpus_per_node) != listed_speed(tuning, gpus_per_node);
}

}  // namespace lambcast
