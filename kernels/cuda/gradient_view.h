// A gradient in device memory as a backward pass leaves it: fp32, fp16 or bf16, with the factor
// that unscales and clips it. A kernel widens each element when it reads it, and multiplies it by
// the factor in fp32. The bits are those of reference::unscale, without a pass that writes an fp32
// copy.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/cuda/half_precision.h"

namespace lambcast::cuda {

enum class GradientFormat { fp32, fp16, bf16 };

struct Gradient {
  const void* values = nullptr;  // null: no gradient
  GradientFormat format = GradientFormat::fp32;
  // Factor in device memory, so that a captured CUDA graph replays with the factor of its step;
  // null: 1.
  const float* factor = nullptr;

  Gradient() = default;
  Gradient(std::nullptr_t) {}
  Gradient(const float* g, const float* by = nullptr) : values(g), factor(by) {}
  Gradient(HalfPointer g, const float* by = nullptr)
      : values(g.bits),
        format(g.format == HalfFormat::bf16 ? GradientFormat::bf16 : GradientFormat::fp16),
        factor(by) {}

  explicit operator bool() const { return values != nullptr; }
  std::size_t element_bytes() const { return format == GradientFormat::fp32 ? 4 : 2; }
  // Returns the gradient from element `first` on; a null gradient stays null.
  Gradient behind(std::size_t first) const {
    Gradient rest = *this;
    if (values) rest.values = static_cast<const char*>(values) + first * element_bytes();
    return rest;
  }
};

}  // namespace lambcast::cuda
