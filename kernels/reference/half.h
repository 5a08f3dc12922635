// The two 16-bit formats, as raw bits, for gradients and the copy of the fp32 master weights: fp16,
// IEEE binary16 (11 bits of mantissa, up to 65504), and bf16, the upper half of a float (8 bits,
// the range of fp32). Both round to nearest, ties to even, overflow to infinity, and have one NaN,
// as CUDA's conversions do.
#pragma once

#include <cstdint>

namespace lambcast::reference {

enum class HalfFormat { fp16, bf16 };

std::uint16_t to_half(float value, HalfFormat format = HalfFormat::fp16);
float from_half(std::uint16_t bits, HalfFormat format = HalfFormat::fp16);

}  // namespace lambcast::reference
