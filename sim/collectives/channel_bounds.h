// Limits of NCCL's channels, in addition to the limits of links and NICs.
//
// A channel of LL or LL128 passes on r bytes per second (channel_rate of Protocol). Between nodes
// each channel also has a buffer of w bytes in 8 steps: a step is sent once the receiver has taken
// the step that used the same place. With c channels, B bytes and a network hop of latency d
//
//   time >= B / (c r)            for LL and LL128
//   time >= d B / (c w)          between nodes; a message: d (B / (c w) - 1), as its latency is d
//
//   w      Simple 4 MiB, LL128 4.4 MiB and LL 256 KiB of payload; messages 1 MiB (8 steps of
//          128 KiB). Over n TCP connections at most n 1.5 MiB: each sends a window of 3 MiB per
//          round trip
//
// The first bound also holds for a hop, on which a channel of a chain (a broadcast) passes on only
// its part of a slice.
//
// The second bound matters for long hops: at 1 ms, a message over two channels is no faster than
// 2.1 GB/s. One published series shows it: peers exchange weights of 1.34 GB over 1 to 5 ms of
// additional latency and take 0.60 s per ms, 0.64 by this bound (Bagua, bert-large, 16 nodes).
// The rings of Horovod in the same series take 0.77 s per ms, 0.88 by this bound and the latency.
// Hosts that raise Linux's limits have larger windows; this is not modelled.
//
// Source: NCCL src/include/device.h (NCCL_STEPS), src/init.cc (DEFAULT_BUFFSIZE,
// DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE), src/graph/paths.cc (two
// channels to a peer); Linux Documentation/networking/ip-sysctl.rst (tcp_rmem up to 6 MB, of which
// tcp_adv_win_scale makes half the window).
#pragma once

#include "sim/collectives/lower.h"

namespace lambcast {

// Returns the slice size: the bytes that a lane (a ring or tree through one NIC) passes on at once.
// In NCCL's rings, a lane has two channels, each of which passes on two steps of its buffer; in
// trees and chains, a lane passes on one step (src/enqueue.cc, src/include/collectives.h).
Bytes slice_of(const Round& round, const Transport& transport);

// Lower bounds of two times: for all flows of a repetition, and for a hop of one slice.
struct ChannelBounds {
  Duration flows, hop;
};

ChannelBounds channel_bounds(const Round& round, const CommSchedule& schedule, Bytes size,
                             const Transport& transport, const Protocol& protocol,
                             const Placement& placement);

RoundTransfer bounded(const RoundTransfer& transfer, const Round& round,
                      const ChannelBounds& least);

}  // namespace lambcast
