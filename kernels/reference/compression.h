// CPU reference of error-compensated 1-bit compression, the three phases of compressed_allreduce:
//
//   worker   c = x + e_w;  s_w = ||c||_2 / sqrt(N);  bits = sgn(c);  e_w = c - s_w sgn(c)
//   server   y = sum_i sgn_i * (s_w,i * (1/n)) + e_s;  s_s = ||y||_2 / sqrt(C);  the same again
//   decode   x = s_s[r] * sgn(y_r) on chunk r
//
// sgn(c) is -1 for c < 0 and +1 otherwise, also for 0, -0.0 and NaN. The scale is the root mean
// square, not mean |c|. Element 0 is the most significant bit of byte 0. A NaN or infinity anywhere
// makes the scale, and hence every decoded element, non-finite.
//
// Norms are summed in double and rounded once, so that a tree reduction on a GPU agrees to 1e-6.
// The server adds ranks in float, four by four: (r0 + r1 + r2 + r3) + (r4 + ...), the order in
// which the GPU looks up the votes of four ranks. Source: DeepSpeed 0.15.4, runtime/comm/nccl.py;
// 1-bit Adam, arXiv:2102.02888, algorithm 1.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/layout.h"

namespace lambcast::reference {

// Sign of -0.0 in packing. It makes no difference inside compressed_allreduce: errors start at +0.0
// and x - x is +0.0, so no compensated value is ever -0.0.
enum class SignRule {
  not_negative,  // correct: -0.0 packs as +, as its error term assumes
  sign_bit,      // DeepSpeed's "compressed" backend on XPU: -0.0 packs as -
};

// Generic packing and unpacking of the "compressed" backend. `signs` has ceil(N / 8) bytes; the
// unused bits of the last byte are 0. unpack writes +1 and -1.
void pack_signs(std::span<const float> x, std::span<std::uint8_t> signs,
                SignRule rule = SignRule::not_negative);
void unpack_signs(std::span<const std::uint8_t> signs, std::span<float> x);

// Returns ||x||_2 / sqrt(count); 0 if count is 0.
float rms(std::span<const float> x, std::size_t count);

// Packs x (N elements) into signs (error.size() / 8 bytes) and writes the new error feedback to
// `error`. Elements from N to error.size() are padding: they are packed as +, or with
// Padding::counted take part with x = 0. Returns the scale.
float worker_phase(std::span<const float> x, std::span<float> error, std::span<std::uint8_t> signs,
                   Padding padding);

// `received` holds n packed chunks of error.size() / 8 bytes, rank 0 first; the first `real`
// elements of the chunk are not padding. Returns the scale of the chunk.
float server_phase(std::span<const std::uint8_t> received, std::span<const float> worker_scales,
                   std::span<float> error, std::span<std::uint8_t> signs, std::size_t real,
                   Padding padding);

// x[e] = scales[e / chunk] * sgn(e); x may end before the padding.
void decode(std::span<const std::uint8_t> signs, std::span<const float> scales, std::size_t chunk,
            std::span<float> x);

// m = (b1 m + (1 - b1) g) * scaling: the local momentum, scaled to the common size of the tensors.
void update_momentum(std::span<float> m, std::span<const float> g, double beta1, float scaling);

// x *= mask. Momenta that are always zero need it: 0 decodes as +scale.
void apply_mask(std::span<float> x, std::span<const float> mask);

}  // namespace lambcast::reference
