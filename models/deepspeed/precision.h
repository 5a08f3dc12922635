// Precision of a file that leaves the choice to Hugging Face.
//
// "auto" in fp16.enabled and bf16.enabled is replaced by the Trainer, from --fp16 and --bf16 of the
// training script, before DeepSpeed reads the file. A file alone does not say which, but who leaves
// the choice open does not train in fp32, so
//
//   one of the two is "auto"   that one, unless the file turns the other on
//   both are                   bf16; fp16 for LAMB and the 1-bit optimizers, since DeepSpeed's
//   LAMBs
//                              insist on dynamic loss scaling and the others were verified with it
//
// and the finding `auto-precision` says so. Source: transformers 4.x,
// integrations/deepspeed.py (HfTrainerDeepSpeedConfig.trainer_config_process).
#pragma once

#include <vector>

#include "models/deepspeed/config.h"

namespace lambcast::deepspeed {

// Turns "auto" into on or off. Call it once flags have had their say about the optimizer, and only
// where none said the precision.
std::vector<Finding> settle_auto_precision(DeepSpeedConfig& config);

}  // namespace lambcast::deepspeed
