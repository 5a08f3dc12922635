// Exchanges that send a fixed number of values from each chunk of 4,096 elements in an all-gather,
// with error feedback (kernels/reference/chunk_top_k.h and dct_sign.h):
//
//   chunktopk:K   the K largest values of a chunk, in 2 bits each, with 12 bits for the position
//                 (SparseLoCo, arXiv:2508.15706). Each of n ranks receives (n - 1) 14 K / 4,096
//                 bits for an element
//   dctsign:K     the signs of the K largest coefficients of a 64 x 64 cosine transform, with 16
//                 bits for the position (DeMo, arXiv:2411.19870; signs as in psyche). A transform
//                 takes 256 FLOPs per element. There are three: of the values, of the kept
//                 coefficients, and of the sum
//
// The kernels are PyTorch's, also with --kernels fused: this project has none. DeMo keeps no
// moments of Adam; --optimizer selects the states of the update.
#pragma once

#include "models/training/plan/exchange_parts.h"

namespace lambcast {

// Returns the bytes of one rank's message for `elements` elements.
double chunked_message_bytes(const Exchange& exchange, double elements);

void write_chunked(ExchangeParts& parts);

// Adds the lossless exchange. A sum needs the values, so the ranks decode before it and code the
// sums again. Coding and decoding each move 3 (2 to 4) times an element's bytes: a third of the
// memory's rate (DietGPU).
void write_lossless(ExchangeParts& parts);

}  // namespace lambcast
