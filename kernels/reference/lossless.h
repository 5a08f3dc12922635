// CPU reference of bf16 without loss, in blocks of 512. A block has its largest exponent in 8 bits,
// and in 4 bits the width w of the distances to it. A value has its sign and mantissa in 8 bits,
// and the distance of its exponent in w bits.
#pragma once

#include "kernels/reference/chunk_message.h"

namespace lambcast::reference {

ChunkMessage encode_lossless(std::span<const std::uint16_t> values);
std::vector<std::uint16_t> decode_lossless(const ChunkMessage& message, std::size_t elements);

}  // namespace lambcast::reference
