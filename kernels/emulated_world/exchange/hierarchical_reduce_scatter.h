// ZeRO++'s qgZ. The ranks of a node first send each other the parts that the others' shards are
// made of, quantised; every rank adds up and sends the sums to its peers on other nodes, quantised
// again: between nodes travels 1/g of the buffer, g the ranks of a node. Error feedback is LoCo's.
// Sources: ZeRO++ arXiv:2306.10209, section 3.3; DeepSpeed runtime/comm/coalesced_collectives.py.
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

// Ranks of a node follow each other.
struct HierarchicalReduceScatter {
  int per_node = 1;
  Quantiser in_node, between_nodes;
  bool error_feedback = false;
  std::vector<std::vector<float>> worker = {};  // [rank][n shards], error feedback in the node
  // [rank][a shard for each node], error feedback between nodes
  std::vector<std::vector<float>> between = {};
};
// Rank r ends with the average of shard r, ceil(N/n) elements or less for the last, at the front of
// its buffer; the rest of the buffer stays. Throws Error where per_node does not divide the ranks.
Wire average(HierarchicalReduceScatter& state, Buffers buffers);

}  // namespace lambcast::emulated
