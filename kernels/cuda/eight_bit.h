// Adam in the small space of GaLore with moments in 8 bits, on the GPU: the last round of
// reference/galore.h, to the bit. What is before and behind it: galore.h.
//
// Bytes per element of R: 12 (read R, two codes; write the update, two codes) and 16 per block of
// 256. One block of the grid takes a block of the state at a time.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels/reference/galore.h"

namespace lambcast::cuda {

constexpr std::size_t eight_bit_block = 256;

// 512 floats: the maps of signed and of positive values.
std::vector<float> eight_bit_maps();

struct EightBitMoments {
  std::uint8_t* m = nullptr;
  std::uint8_t* v = nullptr;
  float* m_largest = nullptr;  // per block; zero at first, and so are the codes of zero
  float* v_largest = nullptr;
  const float* maps = nullptr;
  float* low = nullptr;  // R, then the update
  std::size_t elements = 0;
};

// `clipped` multiplies R (reference::clip). `step` counts from 1.
cudaError_t eight_bit_adam(const EightBitMoments& state, const reference::GaloreOptions& options,
                           double clipped, int step, cudaStream_t stream);

}  // namespace lambcast::cuda
