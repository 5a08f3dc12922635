// ZeRO++'s qgZ. The ranks of a node first send each other quantised parts for the others' shards.
// Every rank sums them and sends the sums to its peers on other nodes, quantised again: 1/g of the
// buffer is sent between nodes, with g the ranks of a node. Error feedback is LoCo's. Sources:
// ZeRO++ arXiv:2306.10209, section 3.3; DeepSpeed runtime/comm/coalesced_collectives.py.
#pragma once

#include "kernels/emulated_world/exchange/wire.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::emulated {

// State of the exchange. Ranks of a node have consecutive numbers.
struct HierarchicalReduceScatter {
  int per_node = 1;
  Quantiser in_node, between_nodes;
  bool error_feedback = false;
  std::vector<std::vector<float>> worker = {};  // [rank][n shards], error feedback within the node
  // [rank][a shard for each node], error feedback between nodes
  std::vector<std::vector<float>> between = {};
};
// Rank r ends with the average of shard r, ceil(N/n) elements or fewer for the last, at the front
// of its buffer; the rest of the buffer does not change. Throws Error unless per_node divides the
// ranks.
Wire average(HierarchicalReduceScatter& state, Buffers buffers);

}  // namespace lambcast::emulated
