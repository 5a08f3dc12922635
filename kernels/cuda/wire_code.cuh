// Codes of x / scale in the formats with a scale, and their values: the bits of
// reference/quantisation.h in a few instructions. A multiprocessor converts between floats and
// integers at most at a quarter of the rate of additions, and a division takes ten instructions.
// Neither is done for single elements. Instead, a constant is added whose last place is the unit of
// the code: this rounds to nearest, ties to even, and leaves the integer in the lowest bits.
#pragma once

#include "kernels/cuda/device.cuh"

namespace lambcast::cuda {

// A code, and its value before it is multiplied by the scale.
struct Coded {
  unsigned code;
  float value;
};

template <int width>
struct IntegerCode {
  static constexpr int bits = width;
  static constexpr float limit = (1 << (width - 1)) - 1;

  __device__ static Coded coded(float ratio) {
    constexpr float shift = 0x1.8p23f;
    const float shifted = fmaxf(fminf(ratio, limit), -limit) + shift;
    return {to_bits(shifted) & ((1u << width) - 1), shifted - shift};
  }
  // Returns the values of four codes, the first in the lowest bits. A code plus `sign` is in the
  // mantissa of a float whose exponent makes it units, at bits below 16. `mask` is an argument
  // because an instruction takes one constant: a mask known at compile time would need one more
  // instruction.
  static constexpr unsigned mask = (1u << width) - 1;
  __device__ static Quad values(unsigned codes, unsigned mask) {
    constexpr unsigned sign = 1u << (width - 1);
    Quad q;
    for (int i = 0; i < 4; ++i) {
      const int at = i * width % 16;
      const unsigned word = codes >> (i * width - at), one = exponent_bits(23 - at);
      q.at[i] = from_bits((word & mask << at) ^ (one | sign << at)) - from_bits(one | sign << at);
    }
    return q;
  }
};

template <int mantissa, int bias>
struct FloatCode {
  static constexpr int bits = 8;
  // The largest code of e4m3 is NaN in its specification, and the largest exponent of e5m2
  // infinity.
  static constexpr float limit = mantissa == 3 ? 448 : 57344;

  // Works in units of the last place; below the smallest normal number, in units of a subnormal. A
  // carry goes into the exponent.
  __device__ static Coded coded(float ratio) {
    constexpr unsigned smallest = exponent_bits(1 - bias);
    const unsigned sign = to_bits(ratio) & 0x80000000;
    const float magnitude = fminf(fabsf(ratio), limit);
    const unsigned exponent = max(to_bits(magnitude) & exponent_bits(128), smallest);
    const float shift = from_bits(exponent + ((23u - mantissa) << 23)), shifted = magnitude + shift;
    const unsigned field = to_bits(shifted) + ((exponent - smallest) >> (23 - mantissa));
    return {(field & 0x7f) | sign >> 24, from_bits(to_bits(shifted - shift) | sign)};
  }
  // Exponent and mantissa at their places in a float; a factor corrects the bias. Subnormals are
  // subnormal there too.
  static constexpr unsigned mask = 0x80000000 | 0x7fu << (23 - mantissa);
  __device__ static Quad values(unsigned codes, unsigned mask) {
    Quad q;
    for (int i = 0; i < 4; ++i) {
      const int high = static_cast<int>(codes << (24 - 8 * i));
      q.at[i] = from_bits(static_cast<unsigned>(high >> (mantissa + 1)) & mask) *
                from_bits(exponent_bits(127 - bias));
    }
    return q;
  }
};

// A scale, and constants for a division by it:
//
//   q = RN(x r),  r = RN(1 / s);   d = s q - x;   x / s = RN(q - d r)
//
// is the correctly rounded quotient (Markstein 1990; Brisebarre, Muller and Raina 2004 for a
// divisor known before) if nothing under- or overflows. A power of two brings s into [2^-60, 2^60].
// Then d, a multiple of 2^-23 ulp(x / s) s, is exact if |x / s| >= 2^-40. A smaller quotient is
// coded as 0 in every format (e5m2 rounds at 2^-17, 8-bit states at 2^-23), for which it need not
// be exact. The signs of d are chosen so that -0 stays -0. |x / s| is assumed to be below 2^90,
// which holds for every x in a block with scale s.
struct Scale {
  float value, factor, divisor, inverse;
  bool divides;

  __device__ explicit Scale(float scale) : value(scale) {
    factor = scale < 0x1p-60f ? 0x1p90f : scale > 0x1p60f ? 0x1p-90f : 1.0f;
    divisor = scale * factor;
    inverse = 1 / divisor;
    divides = scale != 0 && isfinite(scale);
  }
  __device__ float quotient(float x) const {
    x *= factor;
    const float q = x * inverse, d = fmaf(divisor, q, -x);
    return fmaf(-d, inverse, q);
  }
  // Returns the result if the scale does not divide. A value that is not finite is sent through its
  // scale, and its code is 0, with a sign for infinity.
  __device__ float no_quotient(float x) const {
    return value == HUGE_VALF && isfinite(x) ? x * 0.0f : 0.0f;
  }
};

// Four codes, the first in the lowest bits, and their rounding errors.
struct Encoded {
  unsigned codes;
  Quad rest;
};
template <typename Code>
__device__ Encoded encode(const Quad& c, const Scale& scale) {
  Quad ratio;
  if (scale.divides) {
    for (int i = 0; i < 4; ++i) ratio.at[i] = scale.quotient(c.at[i]);
  } else {
    for (int i = 0; i < 4; ++i) ratio.at[i] = scale.no_quotient(c.at[i]);
  }
  Encoded quad{};
  for (int i = 0; i < 4; ++i) {
    const Coded coded = Code::coded(ratio.at[i]);
    quad.codes |= coded.code << (i * Code::bits);
    quad.rest.at[i] = c.at[i] - coded.value * scale.value;
  }
  return quad;
}

}  // namespace lambcast::cuda
