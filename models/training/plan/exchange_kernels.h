// The kernels of kernels/cuda around an exchange's wire: bytes per element and launches, as their
// headers count them and the table of kernels/limits.md has them, and the names under which
// `lambcast profile` measures them, whose times then stand for all of that.
//
// They take gradients in 32 bits: 6 bytes of an element to widen those of 16 bits, 6 to narrow what
// comes out. A profile has one block size (2,048), eight messages or one to a sum, and 1 % kept; of
// other cases there is no time, nor of PowerSGD's factors, which are launched matrix by matrix: a
// time at one size is no time of hundreds that add up to it.
#pragma once

#include "kernels/exchange_bytes.h"
#include "models/optimizer/passes.h"

namespace lambcast::fused {

inline constexpr Passes widen{6, 1, 0, 0, 0, "unscale_fp16"};
inline constexpr Passes narrow{6, 1, 0, 0, 0, "round_to_fp16"};

// Sign compression of a buffer instead of a momentum.
inline constexpr Passes compress_signs{12.125, 2, 0, 0, 0, "onebit_worker"};

// Quantises messages to 8 or 4 bits, optionally with error feedback. A single scale per message
// needs a first pass, so the elements are read twice.
Passes quantise(const Quantiser& quantiser, bool owes);
// Sums `messages` messages, per element of all of them together.
Passes dequantise_sum(const Quantiser& quantiser, int messages);

inline constexpr Passes add_owed{12, 1, 0, 0, 0, "add_owed"};
// Selects `share` of the elements, including the addition to the error feedback; per element of the
// whole vector.
Passes top_k(double share);
Passes random_k(double share);
// Adds `messages` sparse messages of `share` elements each; per element of all of them.
Passes add_at(double share, int messages);

inline constexpr Passes outer_step{24, 1, 0, 0, 0, "outer_step"};
// Averages a rank's own buffer with those of `neighbours` neighbours.
Passes average(double neighbours);
// The two factors of PowerSGD. The matrix is read again for every four columns of a factor, and
// with the errors added to it for each further turn: 4 by either product. Widened before and
// narrowed after, in 6 each.
Passes factors(double rank, double turns, bool in_half);

}  // namespace lambcast::fused

// The same of PyTorch's kernels, on gradients of g bytes: 2, or 4 if they are added up in fp32,
// which nothing then widens or narrows. Not timed: counted from the bytes that each reads and
// writes.
//   scaled     greatest g, cast g + q; sum of n chunks 1 + 4, cast 4 + q; gathered q + g
namespace lambcast::unfused {

constexpr Passes scale_and_cast(double g) { return {g + g + 1, 0, 2, 0, 0}; }
inline constexpr Passes sum_and_cast{1 + 4 + 5, 0, 3, 0, 0};
constexpr Passes cast_back(double g) { return {1 + g, 0, 1, 0, 0}; }
inline constexpr Passes widen{6, 0, 1, 0, 0};  // to 32 bits or from them
// Cast, then divided by the number of ranks (ddp_comm_hooks/default_hooks.py, _compress_hook).
inline constexpr Passes to_half{6 + 4, 0, 2, 0, 0};
// Gradient g and error feedback 4 read, their sum written 4; the sent values are subtracted later,
// 8.
constexpr Passes add_owed(double g) { return {g + 4 + 4, 0, 2, 0, 0}; }
inline constexpr Passes keep_owed{8, 0, 2, 0, 0};
// Magnitudes selected. Agarwal et al. 2021 (arXiv:2103.00543) took 240 ms for 1 % of ResNet-50's
// 25.6 M on a V100 of some 800 GB/s: 7,500 bytes per element. That was PyTorch 1.8, where one block
// of threads selects; later releases sort with all of them, 20 to 25 times as fast for 10^6
// elements (its pull request 68632), or select with all of them (71081): magnitudes 4 + 4, each of
// four digits of 8 bits 4, what is picked 4 + 4, counted and not timed.
inline constexpr Passes select_largest{7500, 0, 4, 0, 0, {}, 8 + 16 + 8};
// Deep Gradient Compression, over Horovod, takes the threshold from a sample of 1 % that it selects
// as above: magnitudes 4 + 4, a mask 4 + 1, its places 1 + 1, for which the host waits (dgc/
// compression.py, _sparsify: sample_ratio 0.01). Repeated searches are not counted.
inline constexpr double sampled = 0.01;
inline constexpr Passes select_by_sample{8 + sampled * select_largest.bytes_per_element + 5 + 2,
                                         0,
                                         11,
                                         0,
                                         1,
                                         {},
                                         8 + sampled * 32 + 5 + 2};
// Rows of 4,096, each selected by one block of threads that holds it: magnitudes 4 + 4, read again
// 4, places and values written (torch.topk of small rows; counted, not timed).
inline constexpr Passes select_in_chunks{8 + 4, 0, 3, 0, 0};
inline constexpr Passes outer_step{4 * 6, 1, 0, 0, 0};
inline constexpr Passes pick{6, 0, 2, 0, 0};
// Two factors, each with some 8 launches and 10 for each column that Gram-Schmidt makes orthogonal:
// 31, 57 and 109 ms at ranks 4, 8 and 16 for the 54 matrices of ResNet-50; measured 45, 64, 130
// (ibid.).
inline Passes factors(double rank, double turns) {
  return {0, 0, 2 * turns * (8 + 10 * rank), 0, 0};
}
// LoCo's traffic in DeepSpeed in addition to qgZ's, per element of a level: errors widened 3, read
// and written in 16 bits 4, narrowed 3.
inline constexpr Passes loco_owed{10, 2, 0, 0, 0};

}  // namespace lambcast::unfused
