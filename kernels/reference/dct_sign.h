// CPU reference of DeMo's messages: a chunk of 4,096 elements as 64 x 64, X = D B D' with the
// orthonormal cosine transform D; the signs of the k largest coefficients of X, times the mean
// magnitude of all that are sent. A position has 2 bytes. Bits: 17 k per chunk, and 4 bytes per
// message. The last chunk is filled up with zeros for its transform.
//
// Difference from the source: DeMo subtracts the sent coefficients from its accumulated momentum
// and steps by the sign of the decoded sum; here the decoded message is subtracted.
//
// Sources: DeMo arXiv:2411.19870 (demo.py); psyche 0bdb13d9, which sends only signs.
#pragma once

#include "kernels/reference/chunk_message.h"

namespace lambcast::reference {

ChunkMessage encode_cosines(std::span<const float> c, std::size_t kept);
std::vector<float> decode_cosines(const ChunkMessage& message, std::size_t elements,
                                  std::size_t kept);
// Replaces B by D B D', or by the inverse transform if `back`; 64 x 64, in double.
void cosine_transform(std::span<double> block, bool back);

}  // namespace lambcast::reference
