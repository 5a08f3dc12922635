#include "kernels/nccl/compressed_allreduce.h"

#include "kernels/nccl/group.h"

namespace lambcast::cuda {

CompressedAllreduce::CompressedAllreduce(const ChunkLayout& layout, int rank, Padding padding)
    : layout_(layout),
      rank_(rank),
      padding_(padding),
      worker_error_(layout_.padded),
      worker_scale_(1),
      server_error_(layout_.chunk),
      server_scale_(1),
      worker_scales_(static_cast<std::size_t>(layout.ranks)),
      server_scales_(static_cast<std::size_t>(layout.ranks)),
      signs_(layout_.packed_bytes()),
      received_(layout_.packed_bytes()),
      served_(layout_.chunk_bytes()),
      workspace_(reduction_slots) {}

cudaError_t CompressedAllreduce::compress(WorkerPhase phase, cudaStream_t stream) {
  phase.elements = layout_.elements;
  phase.padded = layout_.padded;
  phase.counted = padding_ == Padding::counted ? layout_.padded : layout_.elements;
  phase.error = {worker_error_.data(), worker_scale_.data()};
  phase.signs = signs_.data();
  phase.workspace = workspace_.data();
  return worker_phase(phase, stream);
}

ncclResult_t CompressedAllreduce::exchange(const NcclApi& nccl, ncclComm_t comm,
                                           cudaStream_t stream) {
  const std::size_t bytes = layout_.chunk_bytes();
  Group group(nccl);
  if (const auto e = group.started()) return e;
  for (int peer = 0; peer < layout_.ranks; ++peer) {
    const std::size_t at = static_cast<std::size_t>(peer) * bytes;
    if (const auto e = nccl.ncclSend(signs_.data() + at, bytes, ncclUint8, peer, comm, stream)) {
      return e;
    }
    if (const auto e = nccl.ncclRecv(received_.data() + at, bytes, ncclUint8, peer, comm, stream)) {
      return e;
    }
  }
  if (const auto e = nccl.ncclAllGather(worker_scale_.data(), worker_scales_.data(), 1, ncclFloat32,
                                        comm, stream)) {
    return e;
  }
  return group.end();
}

cudaError_t CompressedAllreduce::serve(cudaStream_t stream) {
  ServerPhase phase;
  phase.received = received_.data();
  phase.worker_scales = worker_scales_.data();
  phase.ranks = layout_.ranks;
  phase.chunk = layout_.chunk;
  phase.counted = padding_ == Padding::counted ? layout_.chunk : layout_.real_in_chunk(rank_);
  phase.error = {server_error_.data(), server_scale_.data()};
  phase.signs = served_.data();
  phase.workspace = workspace_.data();
  return server_phase(phase, stream);
}

ncclResult_t CompressedAllreduce::gather(const NcclApi& nccl, ncclComm_t comm,
                                         cudaStream_t stream) {
  Group group(nccl);
  if (const auto e = group.started()) return e;
  if (const auto e = nccl.ncclAllGather(served_.data(), signs_.data(), layout_.chunk_bytes(),
                                        ncclUint8, comm, stream)) {
    return e;
  }
  if (const auto e = nccl.ncclAllGather(server_scale_.data(), server_scales_.data(), 1, ncclFloat32,
                                        comm, stream)) {
    return e;
  }
  return group.end();
}

PackedAverage CompressedAllreduce::average() const {
  return {.all = {layout_.elements, signs_.data(), server_scales_.data(), layout_.chunk}};
}

cudaError_t CompressedAllreduce::forget_errors(cudaStream_t stream) {
  for (const auto* const errors :
       {&worker_error_, &worker_scale_, &server_error_, &server_scale_}) {
    const std::size_t bytes = errors->size() * sizeof(float);
    if (const auto e = cudaMemsetAsync(errors->data(), 0, bytes, stream)) return e;
  }
  return cudaSuccess;
}

void exchange_compressed(const NcclApi& nccl, std::span<const LocalRank> ranks) {
  in_group(nccl, ranks, [&](const LocalRank& rank) {
    require(nccl, rank.state->exchange(nccl, rank.comm, rank.stream), "exchange of signs");
  });
  on_each(ranks,
          [](const LocalRank& rank) { require(rank.state->serve(rank.stream), "server phase"); });
  in_group(nccl, ranks, [&](const LocalRank& rank) {
    require(nccl, rank.state->gather(nccl, rank.comm, rank.stream), "gathering of signs");
  });
}

void compressed_allreduce(const NcclApi& nccl, std::span<const LocalRank> ranks) {
  on_each(ranks, [](const LocalRank& rank) {
    WorkerPhase input;
    input.x = rank.x;
    require(rank.state->compress(input, rank.stream), "worker phase");
  });
  exchange_compressed(nccl, ranks);
  on_each(ranks, [](const LocalRank& rank) {
    const PackedRun average = rank.state->average().all;
    require(decode({average.signs, average.scales, average.chunk, average.end, nullptr, rank.mean},
                   rank.stream),
            "decode");
  });
}

}  // namespace lambcast::cuda
