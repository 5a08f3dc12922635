// Kernels around the messages of an exchange: bytes per element and launches, as counted in the
// headers of kernels/cuda and in the table of kernels/limits.md, and the names under which
// `lambcast profile` measures them. A measured time replaces these counts.
//
// The kernels read gradients in 32 bits: 16-bit ones are widened first (6 bytes per element), and
// the result is narrowed (6 bytes). A profile contains one block size (2,048), sums of eight
// messages or one, and 1 % kept. There is no time for other cases, nor for PowerSGD's factors:
// these are launched matrix by matrix, and the time at one size does not give that of hundreds of
// matrices.
#pragma once

#include "kernels/exchange_bytes.h"
#include "models/optimizer/passes.h"

namespace lambcast::fused {

inline constexpr Passes widen{6, 1, 0, 0, 0, "unscale_fp16"};
inline constexpr Passes narrow{6, 1, 0, 0, 0, "round_to_fp16"};

// Sign compression of a buffer instead of a momentum.
inline constexpr Passes compress_signs{12.125, 2, 0, 0, 0, "onebit_worker"};

// Returns the passes that quantise messages to 8 or 4 bits, optionally with error feedback. A
// single scale per message needs a first pass, so the elements are read twice.
Passes quantise(const Quantiser& quantiser, bool owes);
// Returns the passes that sum `messages` messages, per element of all messages together.
Passes dequantise_sum(const Quantiser& quantiser, int messages);

inline constexpr Passes add_owed{12, 1, 0, 0, 0, "add_owed"};
// Return the passes that select `share` of the elements and add to the error feedback, per element
// of the whole vector.
Passes top_k(double share);
Passes random_k(double share);
// Returns the passes that add `messages` sparse messages of `share` elements each, per element of
// all messages.
Passes add_at(double share, int messages);

inline constexpr Passes outer_step{24, 1, 0, 0, 0, "outer_step"};
// Averages a rank's own buffer with the buffers of `neighbours` neighbours.
Passes average(double neighbours);
// The two factors of PowerSGD. The matrix is read again for every four columns of a factor. Each
// further iteration reads the matrix with its error feedback (4 bytes) once for each product.
// Widening and narrowing take 6 bytes each.
Passes factors(double rank, double turns, bool in_half);

}  // namespace lambcast::fused

// The same work by PyTorch's kernels, on gradients of g bytes: 2, or 4 if they are accumulated in
// fp32 and need no widening or narrowing. Not timed: counted from the bytes that each operation
// reads and writes.
//   scaled to q bytes: greatest magnitude g, cast g + q; sum of n chunks 1 + 4, cast 4 + q; cast of
//   the gathered result q + g
namespace lambcast::unfused {

constexpr Passes scale_and_cast(double g) { return {g + g + 1, 0, 2, 0, 0}; }
inline constexpr Passes sum_and_cast{1 + 4 + 5, 0, 3, 0, 0};
constexpr Passes cast_back(double g) { return {1 + g, 0, 1, 0, 0}; }
inline constexpr Passes widen{6, 0, 1, 0, 0};  // conversion to or from 32 bits
// Casts, then divides by the number of ranks (ddp_comm_hooks/default_hooks.py, _compress_hook).
inline constexpr Passes to_half{6 + 4, 0, 2, 0, 0};
// Reads the gradient (g) and the error feedback (4), and writes their sum (4). keep_owed later
// subtracts the sent values (8).
constexpr Passes add_owed(double g) { return {g + 4 + 4, 0, 2, 0, 0}; }
inline constexpr Passes keep_owed{8, 0, 2, 0, 0};
// Selects the largest magnitudes. Agarwal et al. 2021 (arXiv:2103.00543) measured 240 ms for 1 % of
// ResNet-50's 25.6 M elements on a V100 of some 800 GB/s: 7,500 bytes per element. That was PyTorch
// 1.8, where one block of threads selects. Later releases use all blocks: they sort, 20 to 25 times
// as fast for 10^6 elements (pull request 68632), or select (71081): magnitudes 4 + 4, 4 for each
// of four digits of 8 bits, selected values 4 + 4; counted, not timed.
inline constexpr Passes select_largest{7500, 0, 4, 0, 0, {}, 8 + 16 + 8};
// Deep Gradient Compression, over Horovod, takes the threshold from a sample of 1 %, selected as
// above: magnitudes 4 + 4, a mask 4 + 1, its indices 1 + 1, for which the host waits
// (dgc/compression.py, _sparsify: sample_ratio 0.01). Repeated searches are not counted.
inline constexpr double sampled = 0.01;
inline constexpr Passes select_by_sample{8 + sampled * select_largest.bytes_per_element + 5 + 2,
                                         0,
                                         11,
                                         0,
                                         1,
                                         {},
                                         8 + sampled * 32 + 5 + 2};
// Rows of 4,096 values, each selected by one block of threads that holds it: magnitudes written 4 +
// 4, read again 4, positions and values written (torch.topk of small rows; counted, not timed).
inline constexpr Passes select_in_chunks{8 + 4, 0, 3, 0, 0};
inline constexpr Passes outer_step{4 * 6, 1, 0, 0, 0};
inline constexpr Passes pick{6, 0, 2, 0, 0};
// Two factors, each with some 8 launches, plus 10 for each column that Gram-Schmidt orthogonalises:
// 31, 57 and 109 ms at ranks 4, 8 and 16 for the 54 matrices of ResNet-50; measured 45, 64 and 130
// ms (arXiv:2103.00543).
inline Passes factors(double rank, double turns) {
  return {0, 0, 2 * turns * (8 + 10 * rank), 0, 0};
}
// LoCo's traffic in DeepSpeed in addition to qgZ's, in bytes per element of a level: errors widened
// 3, read and written in 16 bits 4, narrowed 3.
inline constexpr Passes loco_owed{10, 2, 0, 0, 0};

}  // namespace lambcast::unfused
