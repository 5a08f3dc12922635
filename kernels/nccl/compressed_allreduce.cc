#include "kernels/nccl/compressed_allreduce.h"

namespace lambcast::cuda {
namespace {

// Closes the group also when a call in it failed, so that the communicator can still be used or
// torn down; the first error is what the caller hears of.
template <typename Calls>
ncclResult_t in_group(Calls calls) {
  if (const auto e = ncclGroupStart()) return e;
  const ncclResult_t failed = calls();
  const ncclResult_t closed = ncclGroupEnd();
  return failed != ncclSuccess ? failed : closed;
}

}  // namespace

void require(ncclResult_t status, const char* what) {
  if (status != ncclSuccess) {
    throw Error(Exit::failure, std::string(what) + ": " + ncclGetErrorString(status));
  }
}

CompressedAllreduce::CompressedAllreduce(std::size_t elements, int ranks, int rank, Padding padding)
    : layout_(chunk_layout(elements, ranks)),
      rank_(rank),
      padding_(padding),
      worker_error_(layout_.padded),
      worker_scale_(1),
      server_error_(layout_.chunk),
      server_scale_(1),
      worker_scales_(static_cast<std::size_t>(ranks)),
      server_scales_(static_cast<std::size_t>(ranks)),
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

ncclResult_t CompressedAllreduce::exchange(ncclComm_t comm, cudaStream_t stream) {
  const std::size_t bytes = layout_.chunk_bytes();
  return in_group([&]() -> ncclResult_t {
    for (int peer = 0; peer < layout_.ranks; ++peer) {
      const std::size_t at = static_cast<std::size_t>(peer) * bytes;
      if (const auto e = ncclSend(signs_.data() + at, bytes, ncclUint8, peer, comm, stream)) {
        return e;
      }
      if (const auto e = ncclRecv(received_.data() + at, bytes, ncclUint8, peer, comm, stream)) {
        return e;
      }
    }
    return ncclAllGather(worker_scale_.data(), worker_scales_.data(), 1, ncclFloat32, comm, stream);
  });
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

ncclResult_t CompressedAllreduce::gather(ncclComm_t comm, cudaStream_t stream) {
  return in_group([&]() -> ncclResult_t {
    if (const auto e = ncclAllGather(served_.data(), signs_.data(), layout_.chunk_bytes(),
                                     ncclUint8, comm, stream)) {
      return e;
    }
    return ncclAllGather(server_scale_.data(), server_scales_.data(), 1, ncclFloat32, comm, stream);
  });
}

Decode CompressedAllreduce::decoding(float* x) const {
  return {signs_.data(), server_scales_.data(), layout_.chunk, layout_.elements, nullptr, x};
}

void CompressedAllreduce::run(float* x, ncclComm_t comm, cudaStream_t stream) {
  WorkerPhase input;
  input.x = x;
  require(compress(input, stream), "worker phase");
  require(exchange(comm, stream), "exchange of signs");
  require(serve(stream), "server phase");
  require(gather(comm, stream), "gathering of signs");
  require(decode(decoding(x), stream), "decode");
}

}  // namespace lambcast::cuda
