// Precision of a file that leaves the choice to Hugging Face.
//
// The Trainer replaces "auto" in fp16.enabled and bf16.enabled, according to --fp16 and --bf16 of
// the training script, before DeepSpeed reads the file. The file does not tell which of them is
// set, but leaving the choice open makes no sense for fp32. So the assumption is
//
//   one of the two is "auto"   this one, unless the file enables the other
//   both are "auto"            bf16; fp16 for LAMB and the 1-bit optimizers, since DeepSpeed's
//                              LAMBs need dynamic loss scaling and the others were verified with it
//
// and the finding `auto-precision` states it. Source: transformers 4.x, integrations/deepspeed.py
// (HfTrainerDeepSpeedConfig.trainer_config_process).
#pragma once

#include <vector>

#include "models/deepspeed/config.h"

namespace lambcast::deepspeed {

// Turns "auto" into on or off. Call it after the flags have set the optimizer, and only if no flag
// sets the precision.
std::vector<Finding> settle_auto_precision(DeepSpeedConfig& config);

}  // namespace lambcast::deepspeed
