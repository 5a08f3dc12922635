// 1-bit compression with error feedback on the GPU, with the semantics of reference/compression.h.
//
// Every call only enqueues work on `stream`; it neither allocates nor waits. Pointers to float are
// device memory aligned to 16 bytes (else cudaErrorMisalignedAddress).
//
// The error is kept unresolved. The reference turns the compensated value c into the error c - s
// sgn(c) when the scale s is known, which costs a second pass over memory. Here c itself stays in
// memory with s, and the next call computes the difference when it reads them: the same float
// subtraction with the same operands, and one pass less. resolve_errors() writes the errors, for a
// checkpoint or a test.
//
// Bytes moved per element (fp32 state, N elements, n ranks, c = C / N = 1 / n of them served):
//
//   worker_phase of a buffer       read x 4, c 4; write c 4, signs 1/8                   12.125
//   worker_phase of a momentum     read m 4, g 4, c 4; write c 4, signs 1/8              16.125
//   either, gradient in 16 bits    read g 2 instead of 4                         10.125, 14.125
//   server_phase                   read signs 1/8, c 4/n; write c 4/n, signs 1/8n   (n=8) 1.141
//   decode                         read signs 1/8; write x 4                              4.125
//                                  (onebit_lamb_step and the steps of adam.h decode themselves
//                                  and read signs 1/8 instead)
//   the whole path at n = 8        17.391 for a buffer, 21.391 for a momentum (budget: 26), 19.391
//                                  for a momentum whose gradient has 16 bits (budget: 19.4)
//
// Scales are within 1.6e-7 of the reference's: sums are kept in pairs of floats (RunningSum,
// device.cuh). A thread of server_phase has 8 bytes of signs in flight with fewer than 16 ranks, 16
// bytes with fewer than 32, then 32, and 32 bytes of errors with the first signs: 64 in all with 32
// ranks and more.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/gradient_view.h"
#include "kernels/cuda/reduction.h"
#include "kernels/reference/compression.h"

namespace lambcast::cuda {

using reference::SignRule;

// Error feedback of a rank: c - *scale * sgn(c), elementwise. Initially all zero.
struct ErrorMemory {
  float* compensated = nullptr;
  float* scale = nullptr;  // one float; after a phase it is also the scale to send
};

struct WorkerPhase {
  // With x only, x is the buffer. With a gradient only, the gradient is the buffer. With both, x is
  // the momentum of the previous step, and (b1 x + (1 - b1) gradient) * scaling is sent. Neither is
  // written.
  const float* x = nullptr;
  Gradient gradient;
  double beta1 = 0;
  // Scaling of tensor t, which has the elements [tensor_offsets[t], tensor_offsets[t+1]); null: no
  // scaling.
  const float* scaling = nullptr;
  const std::size_t* tensor_offsets = nullptr;
  int tensors = 0;

  std::size_t elements = 0;    // N: elements of the gradient, and of x if x_elements is 0
  std::size_t x_elements = 0;  // more than N if x includes its own padding, which is sent unchanged
  std::size_t padded = 0;      // Np, a multiple of 8
  std::size_t counted =
      0;              // elements that the scale includes; signs of later ones are +, their errors 0
  ErrorMemory error;  // Np elements
  std::uint8_t* signs = nullptr;  // Np / 8 bytes
  double* workspace = nullptr;    // reduction_slots doubles
};
cudaError_t worker_phase(const WorkerPhase& phase, cudaStream_t stream);

struct ServerPhase {
  const std::uint8_t* received = nullptr;  // n chunks of C / 8 bytes, rank 0 first
  const float* worker_scales = nullptr;    // n
  int ranks = 0;
  std::size_t chunk = 0;    // C, a multiple of 8
  std::size_t counted = 0;  // elements that the scale includes, as in WorkerPhase
  ErrorMemory error;        // C elements
  std::uint8_t* signs = nullptr;
  double* workspace = nullptr;
};
cudaError_t server_phase(const ServerPhase& phase, cudaStream_t stream);

struct Decode {
  const std::uint8_t* signs = nullptr;
  const float* scales = nullptr;  // one per chunk
  std::size_t chunk = 0;
  std::size_t elements = 0;
  const float* mask = nullptr;  // null: all ones; 4 more bytes per element
  float* x = nullptr;
};
cudaError_t decode(const Decode& phase, cudaStream_t stream);

// The packed average over the ranks, for steps that decode it.
struct PackedRun {  // elements up to `end`, from the end of the previous run
  std::size_t end = 0;
  const std::uint8_t* signs = nullptr;
  const float* scales = nullptr;  // one per chunk
  std::size_t chunk = 0;
};
struct PackedAverage {
  PackedRun all = {};               // a buffer sent in one piece; its `end` is not read
  const PackedRun* runs = nullptr;  // device memory, up to the end of the buffer: for tensors sent
                                    // separately, which begin at multiples of four
  const float* mask = nullptr;      // null: all ones; 4 more bytes per element
};

// Generic packing and unpacking of signs: 4.125 bytes per element each.
cudaError_t pack_signs(const float* x, std::uint8_t* signs, std::size_t elements, SignRule rule,
                       cudaStream_t stream);
cudaError_t unpack_signs(const std::uint8_t* signs, float* x, std::size_t elements,
                         cudaStream_t stream);

// x *= mask: 12 bytes per element.
cudaError_t apply_mask(float* x, const float* mask, std::size_t elements, cudaStream_t stream);

// error = c - *scale * sgn(c) for the first `elements`. They must be counted ones: other padding
// has no error feedback. 8 bytes per element.
cudaError_t resolve_errors(const ErrorMemory& memory, float* error, std::size_t elements,
                           cudaStream_t stream);

}  // namespace lambcast::cuda
