// Buffers of 16 bits per element in device memory, fp16 or bf16 (reference/half.h): gradients of a
// backward pass, and the copy of the fp32 weights that the next forward pass reads. Aligned to 8
// bytes, a quad of elements.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/reference/half.h"

struct __half;
struct __nv_bfloat16;

namespace lambcast::cuda {

using reference::HalfFormat;

struct HalfPointer {
  std::uint16_t* bits = nullptr;  // null: no buffer
  HalfFormat format = HalfFormat::fp16;

  HalfPointer() = default;
  HalfPointer(std::nullptr_t) {}
  HalfPointer(std::uint16_t* raw, HalfFormat as) : bits(raw), format(as) {}
  HalfPointer(__half* x) : bits(reinterpret_cast<std::uint16_t*>(x)) {}
  HalfPointer(__nv_bfloat16* x)
      : bits(reinterpret_cast<std::uint16_t*>(x)), format(HalfFormat::bf16) {}

  explicit operator bool() const { return bits != nullptr; }
  // Returns the buffer from element `elements` on; a null buffer stays null.
  HalfPointer behind(std::size_t elements) const {
    return bits == nullptr ? *this : HalfPointer(bits + elements, format);
  }
};

// to = from, rounded: 6 bytes per element.
cudaError_t round_to(HalfPointer to, const float* from, std::size_t elements, cudaStream_t stream);

}  // namespace lambcast::cuda
