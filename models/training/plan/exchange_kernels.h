// The kernels of kernels/cuda around an exchange's wire: bytes per element and launches, as their
// headers count them and the table of kernels/guide.md has them, and the names under which
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

// Of a buffer rather than of a momentum.
inline constexpr Passes compress_signs{12.125, 2, 0, 0, 0, "onebit_worker"};

// Messages in 8 or 4 bits, with what they do not say owed or lost. One scale for all of a message
// is known after a pass: what is coded is read twice.
Passes quantise(const Quantiser& quantiser, bool owes);
// The sum of so many messages, per element that all of them together have.
Passes dequantise_sum(const Quantiser& quantiser, int messages);

inline constexpr Passes add_owed{12, 1, 0, 0, 0, "add_owed"};
// Of a share of the elements, with the addition to what is owed; per element of all.
Passes top_k(double share);
Passes random_k(double share);
// What as many messages say of their share; per element of all of them.
Passes add_at(double share, int messages);

inline constexpr Passes outer_step{24, 1, 0, 0, 0, "outer_step"};
// Of a rank's own buffer and those of so many neighbours.
Passes average(double neighbours);

}  // namespace lambcast::fused
