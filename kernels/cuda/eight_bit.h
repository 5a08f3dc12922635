// Adam in GaLore's small space with moments in 8 bits, on the GPU: the last round of
// reference/galore.h, bit for bit. The steps before and after it are in galore.h.
//
// Bytes per element of R: 12 (read R, two codes; write the update, two codes) and 16 per block of
// 256. With moments in 32 bits, as small tensors keep them, 24. All tensors are in one launch: a
// table divides them into pieces of some blocks, which the blocks of the grid share.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/cuda/tensor_pieces.h"
#include "kernels/reference/galore.h"

namespace lambcast::cuda {

constexpr std::size_t eight_bit_block = 256;

// Returns 512 floats: the maps of signed and of positive values.
std::vector<float> eight_bit_maps();

struct EightBitMoments {
  std::uint8_t* m8 = nullptr;
  std::uint8_t* v8 = nullptr;
  float* m_largest = nullptr;  // per block; initially zero, so that all codes decode as 0
  float* v_largest = nullptr;
  float* m = nullptr;  // used instead of the codes and largest values if m8 is null
  float* v = nullptr;
  float* low = nullptr;  // R; afterwards the update
  std::size_t elements = 0;
};

// Tensors and tables in device memory.
struct EightBitBatch {
  const EightBitMoments* tensors = nullptr;
  const float* maps = nullptr;
  const std::uint32_t* nearest = nullptr;  // tables of both maps (eight_bit_code.h)
  TensorPieces pieces;
};

// The tensors, the maps and the table of their pieces, as owned memory of the current device.
class EightBitTensors {
 public:
  explicit EightBitTensors(std::span<const EightBitMoments> tensors);
  EightBitBatch batch() const;

 private:
  DeviceBuffer<EightBitMoments> tensors_;
  DeviceBuffer<float> maps_;
  DeviceBuffer<std::uint32_t> nearest_;
  DeviceBuffer<TensorPiece> pieces_;
};

// Makes a step. `clipped` has a factor for R of each tensor (reference::clip), in device memory;
// null: no clipping. `step` counts from 1.
cudaError_t eight_bit_adam(const EightBitBatch& batch, const reference::GaloreOptions& options,
                           const float* clipped, int step, cudaStream_t stream);

}  // namespace lambcast::cuda
