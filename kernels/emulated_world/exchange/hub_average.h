// Averages of ranks that send to a hub instead of to each other: a relay, which adds up what it
// gets, or an object store, from which each rank reads the messages of all ranks. On n ranks, with
// M bytes per message:
//
//   relay    put M, get M, in 8 or 4 bits; the relay has error feedback for what it sends
//   store    put M, get n M, with a fixed number of values per chunk (SparseLoCo)
//
// The store gives the values of ChunkedGather's all-gather, bit by bit.
#pragma once

#include "kernels/emulated_world/exchange/quantised_allreduce.h"
#include "kernels/emulated_world/exchange/sparse_allreduce.h"

namespace lambcast::emulated {

struct RelayAverage {
  Quantiser quantiser;
  bool error_feedback = false;
  std::vector<std::vector<float>> worker = {};  // [rank][N], error feedback
  std::vector<float> relay = {};                // [N], error feedback
};
struct StoreAverage {
  ChunkedGather codec;
};

// Number of bytes that each rank put into the hub in a call, and got from it.
struct HubWire {
  std::size_t put = 0, got = 0;
};
HubWire average(RelayAverage& state, Buffers buffers);
HubWire average(StoreAverage& state, Buffers buffers);

}  // namespace lambcast::emulated
