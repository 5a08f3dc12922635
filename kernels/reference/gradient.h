// CPU reference of the work on a gradient before the optimizer: overflow check, norm, unscaling and
// clipping, and the factor that the engine should have applied for accumulation and loss scale.
//
//   clip = (||g|| / S + 1e-6) / limit;   g *= 1 / (S * max(clip, 1))     S = loss scale
//
// Source: DeepSpeed 0.15.4, runtime/fp16/unfused_optimizer.py (unscale_and_clip_grads).
#pragma once

#include <cstdint>
#include <span>

#include "kernels/options.h"
#include "kernels/reference/half.h"

namespace lambcast::reference {

// Whether any element is infinite or NaN.
bool overflows(std::span<const float> g);
bool overflows(std::span<const std::uint16_t> half_g, HalfFormat format = HalfFormat::fp16);

// Returns ||g||_2, summed in double.
float gradient_norm(std::span<const float> g);
float gradient_norm(std::span<const std::uint16_t> half_g, HalfFormat format = HalfFormat::fp16);

// Returns 1 / (S * max(clip, 1)); limit 0 means no clipping. `norm` is the norm of the gradient
// while it is still multiplied by the loss scale.
float clip_factor(double norm, double loss_scale, double limit);

// g = factor * half_g; the second form unscales an fp32 gradient in place.
void unscale(std::span<const std::uint16_t> half_g, std::span<float> g, float factor,
             HalfFormat format = HalfFormat::fp16);
void unscale(std::span<float> g, float factor);

// Returns the factor by which gradients are scaled wrongly; 1 if they are correct.
double misscaling(LossScaling release, int accumulation_steps, double loss_scale,
                  bool engine_allreduce);

}  // namespace lambcast::reference
