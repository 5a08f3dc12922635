// Exchanges that send a fixed number of values from each chunk of 4,096 elements, gathered by all,
// with error feedback (kernels/reference/chunked.h has the messages):
//
//   chunktopk:K   the K largest of a chunk, in 2 bits, with 12 of their place (SparseLoCo,
//                 arXiv:2508.15706). Each of n ranks receives (n - 1) 14 K / 4,096 bits an element
//   dctsign:K     the signs of the K largest coefficients of a cosine transform of 64 x 64, with 16
//                 bits of their place (DeMo, arXiv:2411.19870; signs as in psyche). An element
//                 takes 256 FLOPs in a transform, of which there are three: to code, of what is
//                 kept, and of the sum
//
// The kernels are PyTorch's, with --kernels fused too: none ships here. DeMo has no moments of
// Adam;
// --optimizer says what the update keeps.
#pragma once

#include "models/training/plan/exchange_parts.h"

namespace lambcast {

// A message of so many elements.
double chunked_message_bytes(const Exchange& exchange, double elements);

void write_chunked(ExchangeParts& parts);

// A sum needs the values, so that ranks decode and code between both phases. Either takes 3 (2 to
// 4) times an element's bytes: a third of the memory's rate (DietGPU).
void write_lossless(ExchangeParts& parts);

}  // namespace lambcast
