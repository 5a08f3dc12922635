// Values of keys that say "auto", which Hugging Face fills in before DeepSpeed reads the file.
//
//   key of zero_optimization             value, from the model's hidden size h
//   reduce_bucket_size                   h h
//   stage3_prefetch_bucket_size          0.9 h h
//   stage3_param_persistence_threshold   10 h
//   gradient_clipping                    1, the Trainer's max_grad_norm
//
// Source: transformers 4.57, integrations/deepspeed.py; accelerate 1.10, accelerator.py.
#pragma once

#include <functional>
#include <string_view>

#include "models/deepspeed/config.h"

namespace lambcast::deepspeed {

// Fills the values in and says so in the finding of each; a hidden size of 0 leaves those that
// need it. Drops the findings of keys for which `is_given` tells that a flag has the value.
void settle_auto_values(DeepSpeedConfig& config, Whole hidden,
                        const std::function<bool(std::string_view key)>& is_given);

}  // namespace lambcast::deepspeed
