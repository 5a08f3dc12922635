// Quantised messages on the GPU: bit for bit the results of reference/quantisation.h, for formats
// with scales. Calls only enqueue work; pointers to float are aligned to 16 bytes, those to payload
// to 4.
//
// Bytes per element of int8 (int4: half a byte less per message; scales: 4 / block more):
//
//   quantise, blocks           read x 4; write payload 1                              5
//   ... with error feedback    read x 4, error 4; write error 4, payload 1           13
//   quantise, one scale        x is read twice: the scale must be known first         9
//   ... with error feedback    read x, c; write c; read c; write payload             17
//   dequantise_sum, n messages read n payloads; write x 4                             n + 4
//
// With one scale the error is kept unresolved, as in compression.h: the compensated value c stays
// in memory with the scale of its message, and the next call computes the difference when it reads
// them. With blocks, a block of the grid holds c in registers until the scale is known, so that the
// error itself is written in the same pass.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/reduction.h"
#include "kernels/exchange_bytes.h"

namespace lambcast::cuda {

// Most elements that a block of the grid holds in registers.
constexpr std::size_t largest_scale_block = 4096;

struct Quantise {
  const float* x = nullptr;
  // Error feedback, or null: it is added to x, and receives the new error. With block 0 it is
  // unresolved: the compensated value, with the scale of its message in *scales. Both are initially
  // zero. To load errors, copy them here and set the scale to 0.
  float* owed = nullptr;
  std::size_t elements = 0;
  // The block is 0, or a multiple of 8 up to largest_scale_block, else cudaErrorInvalidValue.
  Quantiser quantiser;
  std::uint8_t* payload = nullptr;
  float* scales = nullptr;
  double* workspace = nullptr;  // reduction_slots doubles, for block 0
};
cudaError_t quantise(const Quantise& phase, cudaStream_t stream);

// Writes the error feedback after a message with one scale: 8 bytes per element. Returns
// cudaErrorInvalidValue for blocks, whose memory already holds it.
cudaError_t resolve_errors(const Quantise& phase, float* error, cudaStream_t stream);

// x = share * (sum of the messages in order).
struct DequantiseSum {
  const std::uint8_t* payloads = nullptr;  // messages one after another, payload_bytes() each
  const float* scales = nullptr;           // scale_count() each
  int messages = 1;
  std::size_t elements = 0;  // per message
  Quantiser quantiser;
  float share = 1;
  float* x = nullptr;
};
cudaError_t dequantise_sum(const DequantiseSum& phase, cudaStream_t stream);

}  // namespace lambcast::cuda
