// The k largest magnitudes of N: the message of reference/sparse.h, to the bit.
//
// They are found exactly and without sorting. A sample, 16 neighbours of every 4096 elements, says
// above which magnitude somewhat more than k lie. The pass that adds x to what is owed takes those
// away into a list. In the list three passes, 11, 10 and 10 bits of the magnitude from the top,
// count how many have which digit, and one block chooses the digit that the k-th has. Two more know
// where each goes, write them out in order and give back to what is owed what is not taken: a place
// here and there costs a burst of memory each way, so that it is the few not taken that are
// written, not zeros for all that are. Where the list holds fewer than k, or all that should be in
// it do not fit (many magnitudes are the same), all of it goes back and the five passes go through
// everything: slower, the same message. Counts are whole numbers, added by atomics: the same bits
// every time, wherever in the list a stretch of elements lies.
//
// Bytes per element: x and owed are read 4 each and owed is written 4; the sample is read twice,
// 2 x 8 / 256; of the list an entry is written 8 and read 3 x 4, 4 and 8; the message is 8 k / N.
// The list is k and, for large k, hardly more: 12.47 at 1 %. Through everything 20 more.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/sparse.h"

namespace lambcast::cuda {

// Doubles of workspace for top_k, aligned to 16 bytes: 16 bytes for each element kept, one for
// each 512 elements, 0.27 MB.
constexpr unsigned top_k_blocks = 2048;
std::size_t top_k_workspace(std::size_t elements, std::size_t kept);

// Adds x (null: nothing) to the error feedback, then takes k elements of it, whose places become 0:
// the rest is the new error feedback.
cudaError_t top_k(const float* x, float* owed, std::size_t elements, const SparseMessage& message,
                  double* workspace, cudaStream_t stream);

}  // namespace lambcast::cuda
