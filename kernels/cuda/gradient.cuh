// Device code of kernels that read a gradient in its original format (gradient_view.h).
#pragma once

#include "kernels/cuda/device.cuh"
#include "kernels/cuda/gradient_view.h"

namespace lambcast::cuda {

// A gradient with a type known at compile time. T is float, __half or __nv_bfloat16.
template <typename T>
struct TypedGradient {
  const T* values = nullptr;
  const float* factor = nullptr;  // null: 1
};

// Calls f(typed gradient). This is the only place where the format selects a kernel.
template <typename F>
cudaError_t with_type(const Gradient& g, F f) {
  switch (g.format) {
    case GradientFormat::fp16:
      return f(TypedGradient<__half>{static_cast<const __half*>(g.values), g.factor});
    case GradientFormat::bf16:
      return f(TypedGradient<__nv_bfloat16>{static_cast<const __nv_bfloat16*>(g.values), g.factor});
    default:
      return f(TypedGradient<float>{static_cast<const float*>(g.values), g.factor});
  }
}

// A quad is one access: 16 bytes in fp32, 8 in 16 bits.
template <typename T>
bool is_aligned(const TypedGradient<T>& g) {
  return reinterpret_cast<std::uintptr_t>(g.values) % (4 * sizeof(T)) == 0;
}

// Reads quads of a gradient, widened to fp32 and multiplied by its factor. A thread reads the
// factor once. read() follows the other loads of an element, or load() and scaled() are called
// separately, so that no load waits for the product.
template <typename T>
struct GradientReader {
  const T* values;
  float factor;

  __device__ explicit GradientReader(const TypedGradient<T>& g)
      : values(g.values), factor(g.factor ? *g.factor : 1.0f) {}

  __device__ Quad load(std::size_t e, std::size_t limit) const {
    return load_quad(values, e, limit);
  }
  __device__ Quad scaled(Quad q) const {
    for (int i = 0; i < 4; ++i) q.at[i] *= factor;
    return q;
  }
  __device__ Quad read(std::size_t e, std::size_t limit) const { return scaled(load(e, limit)); }
};

}  // namespace lambcast::cuda
