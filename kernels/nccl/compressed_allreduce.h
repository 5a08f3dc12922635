// compressed_allreduce over real GPUs: the kernels of cuda/compression.h around NCCL.
//
//   worker phase   on every rank
//   exchange       one group: chunk r of the signs to rank r (send and receive, the all-to-all),
//                  and an all-gather of the worker scales
//   server phase   on the chunk this rank serves
//   gather         one group: all-gather of the served signs, and of the server scales
//   decode         on every rank; the optimizers skip it and decode inside their own steps
//
// Bytes sent per rank, n ranks, Np padded elements: (n-1)/n Np/8 in each of exchange and gather,
// and 8 (n-1) of scales. These are the four collectives of DeepSpeed's NCCL backend in two
// launches.
//
// Every call enqueues on `stream` and returns. The phases are separate functions because one thread
// with several communicators puts the calls of all of them in one group, and because an optimizer
// puts its own work between them.
//
// Source: DeepSpeed 0.15.4, runtime/comm/nccl.py.
#pragma once

#include <span>

#include "kernels/cuda/compression.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/layout.h"
#include "kernels/nccl/nccl_api.h"

namespace lambcast::cuda {

// The device memory of one rank: errors kept between calls, and the packed signs.
class CompressedAllreduce {
 public:
  // Allocates on the current device: 4 Np + 4 C + (Np / 8) (2 + 1/n) bytes.
  CompressedAllreduce(const ChunkLayout& layout, int rank, Padding padding);
  CompressedAllreduce(std::size_t elements, int ranks, int rank, Padding padding)
      : CompressedAllreduce(chunk_layout(elements, ranks), rank, padding) {}

  const ChunkLayout& layout() const { return layout_; }
  int rank() const { return rank_; }

  // Runs the worker phase on the buffer of `input` (WorkerPhase from x to x_elements), and sets its
  // other members.
  cudaError_t compress(WorkerPhase input, cudaStream_t stream);
  ncclResult_t exchange(const NcclApi& nccl, ncclComm_t comm, cudaStream_t stream);
  cudaError_t serve(cudaStream_t stream);
  ncclResult_t gather(const NcclApi& nccl, ncclComm_t comm, cudaStream_t stream);
  // Returns the average; call it after gather().
  PackedAverage average() const;

  // Clears the error feedback to its initial state.
  cudaError_t forget_errors(cudaStream_t stream);
  // Calls visit(buffer) for all state that is kept between calls (saved_state.h).
  template <typename Self, typename Visit>
  static void each_state(Self& self, Visit& visit) {
    visit(self.worker_error_);
    visit(self.worker_scale_);
    visit(self.server_error_);
    visit(self.server_scale_);
  }

 private:
  ChunkLayout layout_;
  int rank_;
  Padding padding_;
  DeviceBuffer<float> worker_error_, worker_scale_, server_error_, server_scale_;
  DeviceBuffer<float> worker_scales_, server_scales_;  // scales of all ranks
  DeviceBuffer<std::uint8_t> signs_;                   // the worker's, then those of all servers
  DeviceBuffer<std::uint8_t> received_;                // one chunk from every rank
  DeviceBuffer<std::uint8_t> served_;
  DeviceBuffer<double> workspace_;
};

// The arguments of one rank: its state, the N elements of x, and memory for the average, which may
// be x.
struct LocalRank {
  int device = 0;
  CompressedAllreduce* state = nullptr;
  const float* x = nullptr;
  float* mean = nullptr;
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
};

// Runs all phases for the ranks of this thread. Throws Error{Exit::failure} naming the phase that
// failed. exchange_compressed() runs the phases between the worker phase and the decoding; it does
// not read x or mean.
void exchange_compressed(const NcclApi& nccl, std::span<const LocalRank> ranks);
void compressed_allreduce(const NcclApi& nccl, std::span<const LocalRank> ranks);

}  // namespace lambcast::cuda
