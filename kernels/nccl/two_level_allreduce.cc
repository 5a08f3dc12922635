#include "kernels/nccl/two_level_allreduce.h"

#include "kernels/nccl/group.h"
#include "sim/base/error.h"

namespace lambcast::cuda {
namespace {

ChunkLayout layout_between(std::size_t elements, int nodes, int per_node, int place) {
  if (nodes < 2)
    fail_input(Where{"", 0, "nodes"}, "must be at least 2", "ncclAllReduce on one node");
  return share_layout(elements, nodes, per_node, place);
}

ncclDataType_t type_of(HalfFormat format) {
  return format == HalfFormat::bf16 ? ncclBfloat16 : ncclFloat16;
}

}  // namespace

TwoLevelAllreduce::TwoLevelAllreduce(std::size_t elements, int nodes, int node, int per_node,
                                     int place, Padding padding, bool in_half)
    : elements_(elements),
      per_node_(per_node),
      between_(layout_between(elements, nodes, per_node, place), node, padding),
      share_(in_half ? 0 : share().padded),
      half_share_(in_half ? share().padded : 0),
      signs_(padded() / 8),
      scales_(static_cast<std::size_t>(per_node) * static_cast<std::size_t>(nodes)) {}

ncclResult_t TwoLevelAllreduce::scatter(const NcclApi& nccl, ncclComm_t node, const float* x,
                                        HalfPointer half, cudaStream_t stream) {
  if (half)
    return nccl.ncclReduceScatter(half.bits, half_share_.data(), share().padded,
                                  type_of(half.format), ncclAvg, node, stream);
  return nccl.ncclReduceScatter(x, share_.data(), share().padded, ncclFloat32, ncclAvg, node,
                                stream);
}

cudaError_t TwoLevelAllreduce::compress(HalfFormat format, cudaStream_t stream) {
  WorkerPhase input;
  if (half_share_.size() > 0)
    input.gradient = HalfPointer(half_share_.data(), format);
  else
    input.x = share_.data();
  return between_.compress(input, stream);
}

ncclResult_t TwoLevelAllreduce::gather(const NcclApi& nccl, ncclComm_t node, cudaStream_t stream) {
  const PackedRun own = between_.average().all;
  Group group(nccl);
  if (const auto e = group.started()) return e;
  if (const auto e = nccl.ncclAllGather(own.signs, signs_.data(), share().packed_bytes(), ncclUint8,
                                        node, stream))
    return e;
  const auto chunks = static_cast<std::size_t>(share().ranks);
  if (const auto e =
          nccl.ncclAllGather(own.scales, scales_.data(), chunks, ncclFloat32, node, stream))
    return e;
  return group.end();
}

cudaError_t TwoLevelAllreduce::decode(float* mean, cudaStream_t stream) const {
  return cuda::decode({signs_.data(), scales_.data(), share().chunk, elements_, nullptr, mean},
                      stream);
}

void two_level_allreduce(const NcclApi& nccl, std::span<const TwoLevelRank> ranks) {
  std::vector<LocalRank> between;
  for (const TwoLevelRank& rank : ranks)
    between.push_back(
        {rank.device, &rank.state->between(), nullptr, nullptr, rank.place, rank.stream});
  in_group(nccl, ranks, [&](const TwoLevelRank& rank) {
    require(nccl, rank.state->scatter(nccl, rank.node, rank.x, rank.half, rank.stream),
            "reduce-scatter in the node");
  });
  on_each(ranks, [](const TwoLevelRank& rank) {
    require(rank.state->compress(rank.half.format, rank.stream), "worker phase");
  });
  exchange_compressed(nccl, between);
  in_group(nccl, ranks, [&](const TwoLevelRank& rank) {
    require(nccl, rank.state->gather(nccl, rank.node, rank.stream), "gathering in the node");
  });
  on_each(ranks, [](const TwoLevelRank& rank) {
    require(rank.state->decode(rank.mean, rank.stream), "decode");
  });
}

}  // namespace lambcast::cuda
