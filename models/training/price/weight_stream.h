// The times at which the blocks of a pass have their sharded weights, on a separate stream of
// collectives.
//
// Weights are gathered ahead, block after block, at most one block beyond the one that computes;
// gradients are scattered behind the backward pass on the same stream. A block waits for its own
// weights:
//
//   gathered(i) = max(gathered(i - 1), start of block i - 1) + gather
//   start(i)    = max(end(i - 1), gathered(i))
//
// The first `kept` blocks of a pass have their weights already.
//
// Weights outside the blocks (embedding, head) are gathered first, and their gradients scattered
// last. Neither overlaps computation. Sources: PyTorch FSDP's notes on prefetching (BACKWARD_PRE,
// limit_all_gathers); DeepSpeed runtime/zero/partitioned_param_coordinator.py.
#pragma once

#include "sim/base/units.h"

namespace lambcast {

// Times of the collectives of one block, and of the outer ones, which run once for the weights
// outside the blocks.
struct WeightStream {
  Duration gather{}, scatter{}, outer_gather{}, outer_scatter{};
  int kept = 0;
  Duration of(int blocks) const;
};
WeightStream operator+(const WeightStream& a, const WeightStream& b);

// Returns the time by which waiting prolongs a pass of `blocks` blocks that lasts `pass` without
// it.
Duration exposed_on_stream(const WeightStream& stream, int blocks, Duration pass);

}  // namespace lambcast
