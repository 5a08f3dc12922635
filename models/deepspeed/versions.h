// Releases that a 1-bit run needs, and releases of DeepSpeed in which the same file does not give
// 1-bit training.
//
//   PyTorch >= 1.8 with the nccl backend (asserted at start-up)
//   NCCL >= 2.8.3 with 64 or more GPUs ("to avoid certain NCCL runtime bugs")
//   DeepSpeed 0.16.0 to 0.18.2   in the compression stage, in which the engine does not sum
//                                gradients, the loss is not divided by the accumulation steps
//   DeepSpeed 0.17.6 to 0.18.1   under fp16 FP16_Optimizer returns before it has updated anything
//   DeepSpeed from 0.18.3 on     with fp16 and without ZeRO the loss is not multiplied by its
//                                scale, while the optimizer's wrapper divides by it
//   DeepSpeed after 0.19.6       removed its 1-bit optimizers on 2026-09-12
//   DeepSpeed 0.17.6             bf16 without ZeRO keeps all states on every rank; earlier releases
//                                shard them (wrapper.h)
//
// Sources: DeepSpeed tutorials onebit-adam.md and onebit-lamb.md; runtime/comm/nccl.py; release.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/deepspeed/config.h"
#include "sim/base/version.h"

namespace lambcast::deepspeed {

struct Versions {
  std::optional<Version> deepspeed, torch, nccl;
};

// Parses "deepspeed=0.15.4,torch=2.1,nccl=2.18.3", each at most once. Throws Error (usage) at
// `where`.
Versions parse_versions(std::string_view text, const Where& where);

// Returns findings about the release in `config` and the other versions. Codes: torch-too-old
// (error), nccl-too-old, gradients-not-averaged, nothing-updated, loss-not-scaled (warnings),
// onebit-removed (a warning for a release without 1-bit optimizers, else a note), bf16-by-release
// (a note). If no release is given, only notes about the newest one are returned.
std::vector<Finding> check_versions(const Versions& versions, const DeepSpeedConfig& config,
                                    std::int64_t gpus, std::int64_t accumulation_steps,
                                    bool pipeline = false);

}  // namespace lambcast::deepspeed
