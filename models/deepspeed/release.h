// From which release of DeepSpeed on the same file trains in another way: everything that differs
// by release and enters a forecast or a finding.
//
// Sources: the tags v0.3.0 to v0.19.5 and edaa72212, runtime/engine.py (get_data_types,
// dynamic_loss_scale, _do_optimizer_sanity_check, _configure_fp16_optimizer),
// runtime/fp16/fused_optimizer.py; pull requests 416, 7665 and 8490.
#pragma once

#include "sim/base/version.h"

namespace lambcast::deepspeed::release {

// FP16_Optimizer looks for overflow tensor by tensor and waits for each; before, it took the norm.
inline constexpr Version checks_every_tensor{0, 3, 1};
// Gradients of micro batches are summed in the compression stage, not averaged ...
inline constexpr Version sums_micro_batches{0, 16, 0};
// LAMB passes the check for a dynamic loss scale under bf16 too: only fp16.loss_scale is looked at.
inline constexpr Version takes_lamb_in_bf16{0, 17, 1};
// bf16 without ZeRO accumulates in bf16 and runs the wrappers of fp16, whole on every rank.
inline constexpr Version wraps_bf16_as_fp16{0, 17, 6};
// FP16_Optimizer returns under fp16 before it has updated anything ...
inline constexpr Version updates_nothing{0, 17, 6};
inline constexpr Version updates_again{0, 18, 2};
// ... until gradients are averaged again, and the loss without ZeRO no longer scaled under fp16.
inline constexpr Version drops_loss_scale{0, 18, 3};
// Accumulating bf16 gradients in fp32 needs ZeRO stage 1.
inline constexpr Version refuses_fp32_sums{0, 18, 5};
// The newest read (2026-08-22), and the last known to have the 1-bit optimizers, which were removed
// on 2026-09-12.
inline constexpr Version newest{0, 19, 6};

}  // namespace lambcast::deepspeed::release
