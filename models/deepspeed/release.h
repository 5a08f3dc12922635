// Releases of DeepSpeed from which the same file trains differently: all differences between
// releases that affect a forecast or a finding.
//
// Sources: the tags v0.3.0 to v0.19.5 and edaa72212, runtime/engine.py (get_data_types,
// dynamic_loss_scale, _do_optimizer_sanity_check, _configure_fp16_optimizer),
// runtime/fp16/fused_optimizer.py; pull requests 416, 1801, 7665 and 8490.
#pragma once

#include "sim/base/version.h"

namespace lambcast::deepspeed::release {

// FP16_Optimizer checks for overflow tensor by tensor and waits for each; earlier releases compute
// the norm instead.
inline constexpr Version checks_every_tensor{0, 3, 1};
// BF16_Optimizer exists, at first only for pipelines. It sums gradients in fp32.
inline constexpr Version has_bf16_optimizer{0, 6, 2};
// From here until drops_loss_scale, gradients of micro batches are summed instead of averaged in
// the compression stage.
inline constexpr Version sums_micro_batches{0, 16, 0};
// Only fp16.loss_scale is checked for a dynamic loss scale, so LAMB is also allowed under bf16.
inline constexpr Version takes_lamb_in_bf16{0, 17, 1};
// bf16 without ZeRO accumulates in bf16 and uses the wrappers of fp16, with whole states on every
// rank.
inline constexpr Version wraps_bf16_as_fp16{0, 17, 6};
// From here until updates_again, FP16_Optimizer returns under fp16 before it has updated anything.
inline constexpr Version updates_nothing{0, 17, 6};
inline constexpr Version updates_again{0, 18, 2};
// Gradients are averaged again, and the loss without ZeRO is no longer scaled under fp16.
inline constexpr Version drops_loss_scale{0, 18, 3};
// Accumulating bf16 gradients in fp32 needs ZeRO stage 1.
inline constexpr Version refuses_fp32_sums{0, 18, 5};
// The newest release that was read (2026-08-22), and the last known with the 1-bit optimizers,
// which were removed on 2026-09-12.
inline constexpr Version newest{0, 19, 6};

}  // namespace lambcast::deepspeed::release
