// LAMB with states sharded within each node, so that every node has all of them, and with the norms
// of all tensors in one vector: Apex's DistributedFusedLAMB. Two axes of ranks, `nodes` and
// `per_node`.
//
//   gradients   all in one buffer of blocks x chunks x per_node shards; every chunk is reduced to
//               its shards in the node, then shards are summed between nodes
//   norms       |p|^2 and |update|^2 of the part of every tensor in a rank's shards, 2 T numbers
//               in one all-reduce in the node
//   weights     gathered in the node
//
// A shard may begin and end anywhere in a tensor, and may contain many tensors. The step is that of
// reference/sharded_lamb.h on every part of a tensor. Source: Apex
// contrib/optimizers/distributed_fused_lamb.py.
#pragma once

#include <span>
#include <vector>

#include "kernels/layout.h"
#include "kernels/reference/sharded_lamb.h"

namespace lambcast::emulated {

struct NodeSharding {
  int nodes = 1, per_node = 1;
  int blocks = 1, chunks = 1;  // numbers of blocks, and of chunks in each block
};

struct NodeLamb {
  // The part of a tensor in one shard of a rank.
  struct Stretch {
    std::size_t tensor = 0, begin = 0;  // `begin` counts from the start of the buffer
    reference::Part part;
    std::vector<float> p;
    reference::ShardedLamb::State state;
  };

  reference::ShardedLamb rule;
  NodeSharding sharding;
  TensorLayout tensors;
  std::vector<std::vector<Stretch>> ranks;  // [rank], node after node: its segments, in order
  int step = 0;
  std::size_t norm_collectives = 0, summed_values = 0;  // counts of the last step
};

// Throws Error for numbers below 1.
NodeLamb node_lamb(const reference::ShardedLamb& rule, const NodeSharding& sharding,
                   const TensorLayout& tensors, std::span<const float> initial);
// `gradients` has the gradient of each rank, for all tensors.
void step(NodeLamb& optimizer, const std::vector<std::vector<float>>& gradients);
// Returns the weights that a node's ranks gather.
std::vector<float> weights(const NodeLamb& optimizer, int node);

}  // namespace lambcast::emulated
