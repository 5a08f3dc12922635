// CPU reference of the Adam family, elementwise on any flat range. There is no bias correction but
// in plain Adam, and weight decay is decoupled from the moments:
//
//   m = b1 m + (1 - b1) g;   v = b2 v + (1 - b2) g g;   upd = m / (sqrt(v) + eps) + wd p
//   p = p - lr upd
//
// Where v does not move, elements of v = 0 take nothing that was averaged if Unseen says that they
// stay: their m is 0, and weight decay alone moves them.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/{adam,zoadam}.py; bias correction as in Adam,
// arXiv:1412.6980, section 2.
#pragma once

#include <span>

#include "kernels/options.h"

namespace lambcast::reference {

// Plain Adam, and the warm-up stage of 1-bit Adam, and the full-precision step of 0/1 Adam before
// its variance freezes. `step` counts from 1 and matters only for bias correction.
void adam_step(std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g,
               const AdamOptions& options, int step);

// p -= lr (m / (sqrt(v) + eps) + wd p): 1-bit Adam in its compression stage, with the momentum
// already averaged and v frozen. m is written only where it is set to 0.
void adam_apply(std::span<float> p, std::span<float> m, std::span<const float> v,
                const AdamOptions& options, Unseen unseen = Unseen::stay);

// 0/1 Adam between variance updates: m takes the averaged 1-bit gradient, v stays.
void zero_one_onebit_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                          std::span<const float> averaged_g, const AdamOptions& options,
                          Unseen unseen = Unseen::stay);

// 0/1 Adam after the freeze, every step: a local Adam step whose update also adds up in u.
void zero_one_local_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                         std::span<float> u, std::span<const float> g, const AdamOptions& options,
                         Unseen unseen = Unseen::stay);

// The synchronisation of 0/1 Adam, around compressed_allreduce of u. `begin` rewinds p to the last
// common point and brings u to the scale of momentum; `end` takes the averaged u, sets the momentum
// m = -u / lrs (lrs is the sum of the learning rates since the last one, not 0 or m is not finite)
// and moves p. Where an element stays, the decay since the last one is not rewound.
void zero_one_sync_begin(std::span<float> p, std::span<const float> v, std::span<float> u,
                         const AdamOptions& options, Unseen unseen = Unseen::stay);
void zero_one_sync_end(std::span<float> p, std::span<float> m, std::span<const float> v,
                       std::span<float> u, double lrs, const AdamOptions& options,
                       Unseen unseen = Unseen::stay);

}  // namespace lambcast::reference
