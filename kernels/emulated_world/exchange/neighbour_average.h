// Decentralised averaging: every rank averages with its neighbours only. The mean of all replicas
// does not change, and their spread decreases from call to call. The bytes that a rank sends are
// independent of the number of ranks. Sources: decentralised SGD arXiv:1705.09056; one-peer
// exponential graph arXiv:2110.13363, which averages exactly in log2 n calls.
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

enum class Graph {
  ring,                 // self and both neighbours, a third each; with two ranks half each
  one_peer_exponential  // self and rank + 2^(call mod log2 n)
};
int neighbours(Graph graph, int ranks);  // number of ranks that a rank sends to

// `call` counts from 0. Throws Error for an exponential graph if the number of ranks is no power of
// two.
Wire average_with_neighbours(Graph graph, std::size_t call, Buffers buffers, WireFormat format);

}  // namespace lambcast::emulated
