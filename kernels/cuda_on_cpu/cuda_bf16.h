// bfloat16 for the emulated device, with the reference's conversions.
#pragma once

#include "kernels/cuda_on_cpu/cuda_runtime.h"
#include "kernels/reference/half.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};

inline float __bfloat162float(__nv_bfloat16 b) {
  return lambcast::reference::from_half(b.bits, lambcast::reference::HalfFormat::bf16);
}
inline __nv_bfloat16 __float2bfloat16_rn(float f) {
  return {lambcast::reference::to_half(f, lambcast::reference::HalfFormat::bf16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
  return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)};
}
inline float2 __bfloat1622float2(__nv_bfloat162 b) {
  return {__bfloat162float(b.x), __bfloat162float(b.y)};
}
