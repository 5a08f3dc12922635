// CPU reference of messages of a fixed number of values from each chunk of 4,096 elements, the rest
// as error feedback. Places take 12 bits, so that nothing depends on the size of the buffer.
//
//   largest   the k largest magnitudes of a chunk, each in 2 bits: bins between m - 1.5 s, m and
//             m + 1.5 s for the mean m and the spread s of all values sent, which decode to the
//             mean of their members. Bits: 14 k of a chunk, 16 bytes of a message
//   cosines   the chunk as 64 x 64, X = D B D' with the orthonormal cosine transform D; the k
//             largest of X by their signs, times the mean magnitude of all that are sent. A place
//             has 2 bytes. Bits: 17 k of a chunk, 4 bytes of a message
//
// The last chunk is filled up with zeros for its transform; of the largest it sends no more than it
// has. A NaN is sent first and makes what decodes with it NaN.
//
// Differs from the sources: chunks are of the flat buffer, not of each matrix. DeMo subtracts the
// kept coefficients from what it keeps and steps by the sign of the decoded sum; here what was sent
// is subtracted.
//
// Sources: SparseLoCo arXiv:2508.15706 (one-covenant/templar 142666f0); DeMo arXiv:2411.19870
// (demo.py); signs alone: psyche 0bdb13d9.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/exchange_bytes.h"

namespace lambcast::reference {

using ChunkMessage = std::vector<std::uint8_t>;

// Returns the message of c for `kept` values of a chunk.
ChunkMessage encode(ChunkCode code, std::span<const float> c, std::size_t kept);
// Returns what the message of so many elements stands for.
std::vector<float> decode(ChunkCode code, const ChunkMessage& message, std::size_t elements,
                          std::size_t kept);

// bf16 without loss, in blocks of 512: the largest exponent in 8 bits and the width w of the
// others' distance to it in 4; of each value sign and mantissa in 8 bits and that distance in w.
ChunkMessage encode_lossless(std::span<const std::uint16_t> values);
std::vector<std::uint16_t> decode_lossless(const ChunkMessage& message, std::size_t elements);

// B becomes D B D', or back; 64 x 64, in double.
void cosine_transform(std::span<double> block, bool back);

}  // namespace lambcast::reference
