// CPU reference of the Adam family, elementwise on any flat range. Only plain Adam has bias
// correction, and weight decay is decoupled from the moments:
//
//   m = b1 m + (1 - b1) g;   v = b2 v + (1 - b2) g g;   upd = m / (sqrt(v) + eps) + wd p
//   p = p - lr upd
//
// In steps that do not update v, elements with v = 0 take no averaged value if Unseen::stay is set:
// their m is 0, and only weight decay moves them.
//
// Source: DeepSpeed 0.15.4, runtime/fp16/onebit/{adam,zoadam}.py; bias correction as in Adam,
// arXiv:1412.6980, section 2.
#pragma once

#include <span>

#include "kernels/options.h"

namespace lambcast::reference {

// Makes a step of plain Adam, of the warm-up stage of 1-bit Adam, or a full-precision step of 0/1
// Adam before its variance freezes. `step` counts from 1 and is used only for bias correction.
void adam_step(std::span<float> p, std::span<float> m, std::span<float> v, std::span<const float> g,
               const AdamOptions& options, int step);

// p -= lr (m / (sqrt(v) + eps) + wd p): 1-bit Adam in its compression stage, with the momentum
// already averaged and v frozen. m is written only if it is set to 0.
void adam_apply(std::span<float> p, std::span<float> m, std::span<const float> v,
                const AdamOptions& options, Unseen unseen = Unseen::stay);

// A step of 0/1 Adam between variance updates: m is updated with the averaged 1-bit gradient, v
// does not change.
void zero_one_onebit_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                          std::span<const float> averaged_g, const AdamOptions& options,
                          Unseen unseen = Unseen::stay);

// A step of 0/1 Adam after the freeze: a local Adam step whose update is also added to u.
void zero_one_local_step(std::span<float> p, std::span<float> m, std::span<const float> v,
                         std::span<float> u, std::span<const float> g, const AdamOptions& options,
                         Unseen unseen = Unseen::stay);

// The synchronisation of 0/1 Adam, around compressed_allreduce of u. `begin` rewinds p to the last
// common point and scales u to a momentum. `end` takes the averaged u, sets the momentum m = -u /
// lrs (lrs is the sum of the learning rates since the last synchronisation; if it is 0, m is not
// finite) and moves p. For an element that stays, the decay since then is not rewound.
void zero_one_sync_begin(std::span<float> p, std::span<const float> v, std::span<float> u,
                         const AdamOptions& options, Unseen unseen = Unseen::stay);
void zero_one_sync_end(std::span<float> p, std::span<float> m, std::span<const float> v,
                       std::span<float> u, double lrs, const AdamOptions& options,
                       Unseen unseen = Unseen::stay);

}  // namespace lambcast::reference
