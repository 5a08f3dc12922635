// CPU reference of messages with a fixed number of values from each chunk of 4,096 elements; unsent
// values become error feedback. Positions are relative to the chunk and take 12 bits for any
// buffer.
//
//   largest   the k largest magnitudes of a chunk, each in 2 bits: bins between m - 1.5 s, m and
//             m + 1.5 s for the mean m and the spread s of all values sent, which decode to the
//             mean of their members. Bits: 14 k per chunk, and 16 bytes per message
//   cosines   the chunk as 64 x 64, X = D B D' with the orthonormal cosine transform D; signs of
//             the k largest coefficients of X, times the mean magnitude of all that are sent. A
//             position has 2 bytes. Bits: 17 k per chunk, and 4 bytes per message
//
// The last chunk is filled up with zeros for its transform; `largest` sends only its real elements.
// A NaN is sent first, and every value that is decoded with it is NaN.
//
// Differences from the sources: chunks are segments of the flat buffer, not of each matrix. DeMo
// subtracts the sent coefficients from its accumulated momentum and steps by the sign of the
// decoded sum; here the decoded message is subtracted.
//
// Sources: SparseLoCo arXiv:2508.15706 (one-covenant/templar 142666f0); DeMo arXiv:2411.19870
// (demo.py); psyche 0bdb13d9, which sends only signs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/exchange_bytes.h"

namespace lambcast::reference {

using ChunkMessage = std::vector<std::uint8_t>;

// Returns the message of c with `kept` values per chunk.
ChunkMessage encode(ChunkCode code, std::span<const float> c, std::size_t kept);
// Returns the `elements` values that the message decodes to.
std::vector<float> decode(ChunkCode code, const ChunkMessage& message, std::size_t elements,
                          std::size_t kept);

// Codes bf16 without loss, in blocks of 512. A block has its largest exponent in 8 bits, and in 4
// bits the width w of the distances to it. A value has its sign and mantissa in 8 bits, and the
// distance of its exponent in w bits.
ChunkMessage encode_lossless(std::span<const std::uint16_t> values);
std::vector<std::uint16_t> decode_lossless(const ChunkMessage& message, std::size_t elements);

// Replaces B by D B D', or by the inverse transform if `back`; 64 x 64, in double.
void cosine_transform(std::span<double> block, bool back);

}  // namespace lambcast::reference
