// Averages in 1 bit on two levels over real GPUs, by shares as in
// emulated_world/exchange/two_level.h.
//
//   in the node      reduce-scatter of the gradients, their mean in 16 or 32 bits: rank j of a node
//                    has share j (layout.h, share_layout)
//   between nodes    compressed_allreduce.h of share j, among the ranks j of all nodes
//   in the node      all-gather of the signs and scales of all shares, which every rank decodes
//
// Bytes sent per rank, g ranks on each of m nodes, shares of P elements of b bytes: (g-1) P b and
// (g-1) (P/8 + 4 m) in the node, 2 (m-1)/m P/8 + 8 (m-1) between nodes. A node sends as much as one
// of m ranks in a flat exchange: about 1/g of the signs that its g ranks would send in a flat
// exchange of all ranks.
//
// A rank has two communicators: one of the ranks of its node, in the order of j, and one of the
// ranks with its j in all nodes, in the order of nodes. A single node does not compress: use
// ncclAllReduce.
#pragma once

#include "kernels/nccl/compressed_allreduce.h"

namespace lambcast::cuda {

class TwoLevelAllreduce {
 public:
  // Constructs rank `place` of `per_node` on node `node` of `nodes`. Allocates on the current
  // device; with `in_half` a share in 16 bits. Throws Error for fewer than two nodes.
  TwoLevelAllreduce(std::size_t elements, int nodes, int node, int per_node, int place,
                    Padding padding, bool in_half = false);

  // Returns the number of elements that a gradient's buffer must have: per_node equal shares.
  // Elements from `elements` on must be zero.
  std::size_t padded() const { return static_cast<std::size_t>(per_node_) * share().padded; }
  const ChunkLayout& share() const { return between_.layout(); }

  // Each call enqueues on `stream`. Pass `half` if the gradient has 16 bits, else `x`; both have
  // padded() elements.
  ncclResult_t scatter(const NcclApi& nccl, ncclComm_t node, const float* x, HalfPointer half,
                       cudaStream_t stream);
  cudaError_t compress(HalfFormat format, cudaStream_t stream);
  CompressedAllreduce& between() { return between_; }
  ncclResult_t gather(const NcclApi& nccl, ncclComm_t node, cudaStream_t stream);
  cudaError_t decode(float* mean, cudaStream_t stream) const;

 private:
  std::size_t elements_;
  int per_node_;
  CompressedAllreduce between_;
  DeviceBuffer<float> share_;
  DeviceBuffer<std::uint16_t> half_share_;
  DeviceBuffer<std::uint8_t> signs_;  // signs of all shares
  DeviceBuffer<float> scales_;
};

// One of the ranks that a thread drives. `mean` receives the elements, and may be x.
struct TwoLevelRank {
  int device = 0;
  TwoLevelAllreduce* state = nullptr;
  const float* x = nullptr;
  HalfPointer half = {};
  float* mean = nullptr;
  ncclComm_t node = nullptr, place = nullptr;
  cudaStream_t stream = nullptr;
};

// Runs all phases. Throws Error{Exit::failure} naming the phase that failed.
void two_level_allreduce(const NcclApi& nccl, std::span<const TwoLevelRank> ranks);

}  // namespace lambcast::cuda
