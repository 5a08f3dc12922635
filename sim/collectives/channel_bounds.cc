#include "sim/collectives/channel_bounds.h"

#include <algorithm>
#include <limits>

namespace lambcast {
namespace {

constexpr double mebibyte = 1 << 20;
constexpr double channels_of_a_peer = 2;
constexpr double tcp_window = 3 * mebibyte;  // default limit of Linux
constexpr Bytes unbounded(std::numeric_limits<double>::infinity());

// Assumption: with fewer threads than NCCL's default, a channel's rate falls in proportion.
double share_of_threads(const NcclTuning& tuning, std::string_view protocol) {
  const bool ll128 = protocol == "LL128";
  const int said = ll128 ? tuning.ll128_threads : tuning.threads;
  return said == 0 ? 1 : std::min(1.0, said / (ll128 ? 640.0 : 512.0));
}

double channels_of(const CommSchedule& schedule, Bytes size, const Transport& transport,
                   const Protocol& protocol, const Placement& placement) {
  return nccl_channels_for(*transport.tuning, protocol.name, schedule.latencies == Latencies::ring,
                           size, placement.nodes(), placement.per_node);
}

// Returns the number of parts into which a hop divides the round's bytes. Each channel of a chain
// passes on its part of the slice, even if few channels are in use.
double parts_of_hop(const Round& round, const CommSchedule& schedule, double in_use, double all,
                    const Transport& transport) {
  const bool chain = round.pace == Pace::streaming && schedule.latencies == Latencies::ring;
  if (!chain || transport.slice.value() == 0) return in_use;
  return std::max(in_use, all * std::min(1.0, round.lane_bytes / slice_of(round, transport)));
}

Duration by_rate(const Round& round, double channels, const Transport& transport,
                 const Protocol& protocol) {
  const double threads = share_of_threads(*transport.tuning, protocol.name);
  return round.channel_bytes / (protocol.channel_rate * channels * threads);
}

Bytes buffer_of(std::string_view protocol) {
  if (protocol == "LL") return Bytes(mebibyte / 4);
  // 8 steps of 640 threads x 120 words of 8 bytes, of which 15 in 16 are data.
  if (protocol == "LL128") return Bytes(8 * 640 * 120 * 8 * 15 / 16.);
  return Bytes(4 * mebibyte);
}

// Returns the number of bytes that a channel can send per network hop. A TCP connection sends one
// window per round trip of two hops.
Bytes in_flight(const Transport& transport, std::string_view protocol) {
  const Bytes buffer = buffer_of(protocol);
  if (!transport.over_tcp) return buffer;
  return std::min(buffer, Bytes(tcp_window / 2 * transport.connections));
}

}  // namespace

Bytes slice_of(const Round& round, const Transport& transport) {
  const bool tree = round.pace == Pace::streaming && round.channel_bytes.value() > 0;
  return transport.slice * (transport.tuning && tree ? 0.25 : 1);
}

ChannelBounds channel_bounds(const Round& round, const CommSchedule& schedule, Bytes size,
                             const Transport& transport, const Protocol& protocol,
                             const Placement& placement) {
  if (!transport.tuning) return {};
  const bool simple = protocol.name == "Simple", between = placement.nodes() > 1;
  const bool messages = schedule.op == Op::send_recv || schedule.op == Op::all_to_all;
  const Duration hop = hop_of(protocol, schedule.latencies, placement.nodes()).network;
  ChannelBounds least;
  if (round.channel_bytes.value() > 0) {
    const double channels = channels_of(schedule, size, transport, protocol, placement);
    // Within a node NCCL uses as many channels as fill the links under Simple
    // (src/graph/search.cc). The rate of all of Simple's channels is included in the rate of NICs
    // and links.
    if (protocol.channel_rate.value() > 0 && (between || !simple)) {
      const double all = channels_of(schedule, unbounded, transport, protocol, placement);
      least.hop = by_rate(round, parts_of_hop(round, schedule, channels, all, transport), transport,
                          protocol);
      if (!simple) least.flows = by_rate(round, channels, transport, protocol);
    }
    if (between && round.network_hops > 0)
      least.flows = std::max(
          least.flows,
          hop.scaled(round.channel_bytes / (in_flight(transport, protocol.name) * channels)));
  }
  if (messages && between) {
    const Bytes message = round.at_once.value() > 0 ? round.at_once : size;
    const Bytes buffers = Bytes(mebibyte) * channels_of_a_peer;
    least.flows = hop.scaled(std::max(0.0, message / buffers - 1));
  }
  return least;
}

RoundTransfer bounded(const RoundTransfer& transfer, const Round& round,
                      const ChannelBounds& least) {
  const auto hops = static_cast<double>(round.local_hops + round.network_hops);
  return {std::max(transfer.flows, least.flows), std::max(transfer.hops, least.hop.scaled(hops)),
          transfer.local};
}

}  // namespace lambcast
