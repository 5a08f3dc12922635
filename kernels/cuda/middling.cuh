// Roots and quotients of operands in a middle range, rounded as sqrtf and / round them.
//
// sqrtf and / branch for every operand to a slow path for under- and overflow, so the chains of
// some twenty dependent instructions of several elements run one after another. Here one branch is
// for all elements of a thread (MiddlingOperands), and the chains overlap. The instructions are
// those of CUDA's own fast paths: an approximation, and corrections by its remainder (Markstein
// 1990).
#pragma once

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

// Returns sqrtf(x) for 0 or 2^-100 to 2^100.
__device__ inline float middling_root(float x) {
#ifdef LAMBCAST_CUDA_ON_CPU
  return sqrtf(x);
#else
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(fmaxf(x, 0x1p-100f)));
  const float root = x * y;
  return fmaf(fmaf(-root, root, x), 0.5f * y, root);
#endif
}

// Returns x / d for x = 0 or |x| from 2^-60 to 2^60, and d from 2^-50 to 2^51.
__device__ inline float middling_quotient(float x, float d) {
#ifdef LAMBCAST_CUDA_ON_CPU
  return x / d;
#else
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(d));
  y = fmaf(y, fmaf(-d, y, 1.0f), y);
  float q = x * y;
  q = fmaf(fmaf(-d, q, x), y, q);
  return fmaf(fmaf(-d, q, x), y, q);
#endif
}

// Whether x / (sqrtf(squared) + more) of all added operands is in the range of these functions. NaN
// counts as in range.
class MiddlingOperands {
 public:
  __device__ void add(float x, float squared) {
    least_x_ = min(least_x_, magnitude_bits(x) - 1);  // 0 becomes the largest value
    least_squared_ = min(least_squared_, to_bits(squared) - 1);
    most_x_ = fmaxf(most_x_, fabsf(x));
    most_squared_ = fmaxf(most_squared_, squared);
  }
  __device__ bool all(float more) const {
    return least_x_ >= exponent_bits(-60) && least_squared_ >= exponent_bits(-100) &&
           most_x_ <= 0x1p60f && most_squared_ <= 0x1p100f && more >= 0x1p-50f && more <= 0x1p50f;
  }

 private:
  unsigned least_x_ = ~0u, least_squared_ = ~0u;
  float most_x_ = 0, most_squared_ = 0;
};

}  // namespace lambcast::cuda
