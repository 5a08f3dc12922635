// CPU reference of SparseLoCo's messages: the k largest magnitudes of each chunk of 4,096 elements,
// each in 2 bits with a position of 12 bits. The four values are bins separated by m - 1.5 s, m
// and m + 1.5 s, for the mean m and the spread s of all values sent, which decode to the mean of
// their members. Bits: 14 k per chunk, and 16 bytes per message.
//
// A chunk of fewer than k elements sends them all. A NaN is sent first, and every value that is
// decoded with it is NaN.
//
// Source: SparseLoCo arXiv:2508.15706 (one-covenant/templar 142666f0).
#pragma once

#include "kernels/reference/chunk_message.h"

namespace lambcast::reference {

// The values that a message sends, chunk after chunk.
struct Kept {
  std::vector<std::uint32_t> places;  // positions in their chunk
  std::vector<float> values;
};

// Returns the `kept` largest magnitudes of each chunk.
Kept largest_of_chunks(std::span<const float> values, std::size_t kept);

// Returns the message of c with `kept` values per chunk.
ChunkMessage encode_largest(std::span<const float> c, std::size_t kept);
std::vector<float> decode_largest(const ChunkMessage& message, std::size_t elements,
                                  std::size_t kept);

}  // namespace lambcast::reference
