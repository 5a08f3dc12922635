// Half precision for the emulated device, with the reference's conversions.
#pragma once

#include "kernels/cuda_on_cpu/cuda_runtime.h"
#include "kernels/reference/half.h"

struct __half {
  std::uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};

inline float __half2float(__half h) { return lambcast::reference::from_half(h.bits); }
inline __half __float2half_rn(float f) { return {lambcast::reference::to_half(f)}; }
inline __half2 __floats2half2_rn(float x, float y) {
  return {__float2half_rn(x), __float2half_rn(y)};
}
inline float2 __half22float2(__half2 h) { return {__half2float(h.x), __half2float(h.y)}; }
