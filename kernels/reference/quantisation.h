// CPU reference of quantised messages: blocks of elements that share a scale.
//
//   s = max |x| / limit;   q = round(x / s), to nearest, ties to even;   received: q s
//
// with limit 448 (e4m3), 57344 (e5m2), 127 (int8), 7 (int4, two's complement, the first element in
// the low half of a byte). A block of zeros has scale 0. A NaN or an infinity makes the scale, and
// hence every received element of the block, non-finite. fp16 and bf16 have no scale.
//
// Sources: Colossal-AI quantization/fp8.py (one scale per message); ZeRO++ arXiv:2306.10209,
// section 3.3 (blocks); OCP 8-bit floating point specification 1.0 (e4m3: no infinity, largest
// 448).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/exchange_bytes.h"

namespace lambcast::reference {

std::uint8_t to_fp8(float value, WireFormat format);  // saturates at the largest value
float from_fp8(std::uint8_t bits, WireFormat format);

struct Message {
  std::vector<std::uint8_t> payload;
  std::vector<float> scales;

  std::size_t bytes() const { return payload.size() + 4 * scales.size(); }
};

Message quantise(std::span<const float> x, const Quantiser& quantiser);
void dequantise(const Message& message, const Quantiser& quantiser, std::span<float> x);

// Quantises c and leaves the error feedback in its place: c minus the received value.
Message quantise_owed(std::span<float> c, const Quantiser& quantiser);

// x = share * (sum of the messages' values, in order).
void dequantise_sum(std::span<const Message> messages, const Quantiser& quantiser, float share,
                    std::span<float> x);

}  // namespace lambcast::reference
