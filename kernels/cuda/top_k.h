// The k largest magnitudes of N; bit for bit the message of reference/sparse.h.
//
// They are found exactly and without sorting:
//
// - A sample, 16 neighbours of every 4096 elements, gives a magnitude that slightly more than k
//   elements exceed.
// - The pass that adds x to the error feedback moves these candidates into a list.
// - Three passes over the list, 11, 10 and 10 bits of the magnitude from the top, count the
//   elements by digit, and one block chooses the digit of the k-th.
// - Two more passes write the message in order and return candidates that are not taken to the
//   error feedback. Each scattered write costs a burst of memory, so the few elements that are not
//   taken are written, instead of zeros for all taken ones.
//
// If the list has fewer than k entries, or overflows because many magnitudes are equal, all of it
// is returned, and the five passes go over all elements: slower, with the same message. Counts are
// integers added by atomics, so the message has the same bits for any order of the list.
//
// Bytes per element: x and error feedback are read (4 each), and the latter is written (4). The
// sample is read twice (2 x 8 / 256). An entry of the list is written (8) and read (3 x 4, 4 and
// 8). The message is 8 k / N. The list is slightly longer than k. Together 12.47 at 1 %. Passes
// over all elements add 20.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/cuda/sparse.h"

namespace lambcast::cuda {

// Returns the doubles of workspace for top_k, aligned to 16 bytes: 16 bytes for each kept element,
// one for each 512 elements, and 0.27 MB.
constexpr unsigned top_k_blocks = 2048;
std::size_t top_k_workspace(std::size_t elements, std::size_t kept);

// Adds x (unless null) to the error feedback, then takes its k largest elements. They become 0, and
// the others are the new error feedback.
cudaError_t top_k(const float* x, float* owed, std::size_t elements, const SparseMessage& message,
                  double* workspace, cudaStream_t stream);

}  // namespace lambcast::cuda
