// compressed_allreduce over real GPUs: the kernels of cuda/compression.h around NCCL.
//
//   worker phase   on every rank
//   exchange       one group: chunk r of the signs to rank r (send and receive, the all-to-all),
//   and
//                  an all-gather of the worker scales
//   server phase   on the chunk this rank serves
//   gather         one group: all-gather of the served signs, and of the server scales
//   decode         on every rank; 1-bit LAMB skips it and decodes inside its own step
//
// Bytes sent per rank, n ranks, Np padded elements: (n-1)/n Np/8 in each of exchange and gather,
// and 8 (n-1) of scales. These are the four collectives of DeepSpeed's NCCL backend in two
// launches.
//
// Every call enqueues on `stream` and returns; as with any NCCL group, one thread that drives
// several communicators brackets the calls of all of them in ncclGroupStart and ncclGroupEnd, which
// is why the phases are separate functions.
//
// Source: DeepSpeed 0.15.4, runtime/comm/nccl.py.
#pragma once

#include <nccl.h>

#include "kernels/cuda/compression.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/layout.h"

namespace lambcast::cuda {

// The device memory of one rank: errors kept from call to call, and the packed signs.
class CompressedAllreduce {
 public:
  // Allocates on the current device: 4 Np + 4 C + (Np / 8) (2 + 1/n) bytes.
  CompressedAllreduce(std::size_t elements, int ranks, int rank, Padding padding);

  const ChunkLayout& layout() const { return layout_; }

  // `input` names what is compressed (WorkerPhase from x to x_elements); the rest is filled in.
  cudaError_t compress(WorkerPhase input, cudaStream_t stream);
  ncclResult_t exchange(ncclComm_t comm, cudaStream_t stream);
  cudaError_t serve(cudaStream_t stream);
  ncclResult_t gather(ncclComm_t comm, cudaStream_t stream);
  // What decode() and onebit_lamb_step() read after gather().
  Decode decoding(float* x) const;

  // All phases for a process that drives one rank: x (N elements) becomes the compressed average.
  // Throws Error{Exit::failure} naming the phase that failed.
  void run(float* x, ncclComm_t comm, cudaStream_t stream);

 private:
  ChunkLayout layout_;
  int rank_;
  Padding padding_;
  DeviceBuffer<float> worker_error_, worker_scale_, server_error_, server_scale_;
  DeviceBuffer<float> worker_scales_, server_scales_;  // of all ranks
  DeviceBuffer<std::uint8_t> signs_;                   // the worker's, then those of all servers
  DeviceBuffer<std::uint8_t> received_;                // one chunk from every rank
  DeviceBuffer<std::uint8_t> served_;
  DeviceBuffer<double> workspace_;
};

// Throws Error{Exit::failure} when an NCCL call failed.
void require(ncclResult_t status, const char* what);

}  // namespace lambcast::cuda
