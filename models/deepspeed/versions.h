// Which releases a 1-bit run needs, and which of DeepSpeed's do something else than 1-bit training
// with the same file.
//
//   PyTorch >= 1.8 with the nccl backend (asserted at start-up)
//   NCCL >= 2.8.3 with 64 or more GPUs ("to avoid certain NCCL runtime bugs")
//   DeepSpeed 0.16.0 to 0.18.2   in the compression stage, where the engine sums no gradients, the
//                                loss is not divided by the accumulation steps
//   DeepSpeed from 0.18.3 on     with fp16 and without ZeRO the loss is not multiplied by its
//                                scale, while the optimizer's wrapper divides by it
//   DeepSpeed after 0.19.6       has no 1-bit optimizers
//
// Sources: DeepSpeed tutorials onebit-adam.md and onebit-lamb.md; runtime/comm/nccl.py;
// runtime/engine.py of the tags v0.15.4, v0.16.0, v0.18.2, v0.18.3; pull requests 7665 and 8490.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "models/deepspeed/config.h"

namespace lambcast::deepspeed {

using Version = std::array<int, 3>;  // 2.8.3; what is not given is 0

struct Versions {
  std::optional<Version> deepspeed, torch, nccl;
};

// "deepspeed=0.15.4,torch=2.1,nccl=2.18.3", each at most once. Throws Error (usage) at `where`.
Versions parse_versions(std::string_view text, const Where& where);

// Codes: torch-too-old (error), nccl-too-old, gradients-not-averaged, loss-not-scaled,
// onebit-removed (warnings). Nothing for plain optimizers.
std::vector<Finding> check_versions(const Versions& versions, const DeepSpeedConfig& config,
                                    std::int64_t gpus, std::int64_t accumulation_steps);

}  // namespace lambcast::deepspeed
