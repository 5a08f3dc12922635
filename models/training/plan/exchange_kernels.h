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

}  // namespace lambcast::fused
