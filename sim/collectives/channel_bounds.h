// The most that channels of NCCL carry, in addition to the limits of links and NICs.
//
// A channel of LL and LL128 passes on r bytes a second (channel_rate of Protocol). Between nodes
// each channel also has a buffer of w bytes, cut into 8 steps, on its way: a step is sent once the
// receiver has taken the step that had its place. With c channels, B bytes and a network hop of d
//
//   time >= B / (c r)            of LL and LL128
//   time >= d B / (c w)          between nodes; of a message d (B / (c w) - 1), as its latency is d
//
//   w      Simple 4 MiB, LL128 4.4 MiB and LL 256 KiB of payload; messages 1 MiB (steps of 128 KiB)
//
// The first bound holds for a hop too, in which a channel of a chain (a broadcast) passes on no
// more than its part of a slice.
//
// The second bound is felt where a hop takes long: at 1 ms a message over two channels is no faster
// than 2.1 GB/s. One published series shows it, weights of 1.34 GB that peers exchange over 1 to 5
// ms of further latency: 0.60 s for each ms, 0.64 by this bound (Bagua, bert-large, 16 nodes).
//
// Source: NCCL src/include/device.h (NCCL_STEPS), src/init.cc (DEFAULT_BUFFSIZE,
// DEFAULT_LL_BUFFSIZE, DEFAULT_LL128_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE), src/graph/paths.cc (two
// channels to a peer).
#pragma once

#include "sim/collectives/lower.h"

namespace lambcast {

// Returns the bytes that one lane passes on at once. A lane of NCCL's rings has two channels, each
// passing on two steps of its buffer; a lane of its trees and of a chain passes on one step
// (src/enqueue.cc, src/include/collectives.h).
Bytes slice_of(const Round& round, const Transport& transport);

// Lower bounds for the flows of a repetition, and for a hop of one slice.
struct ChannelBounds {
  Duration flows, hop;
};

ChannelBounds channel_bounds(const Round& round, const CommSchedule& schedule, Bytes size,
                             const Transport& transport, const Protocol& protocol,
                             const Placement& placement);

RoundTransfer bounded(const RoundTransfer& transfer, const Round& round,
                      const ChannelBounds& least);

}  // namespace lambcast
