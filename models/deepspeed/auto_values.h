// Values of keys with the word "auto", which Hugging Face replaces before DeepSpeed reads the file.
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

// Replaces "auto" by these values, and states each in the finding of its key. With a hidden size of
// 0, values that depend on it keep DeepSpeed's defaults. Findings of keys that a flag sets
// (`is_given`) are removed.
void settle_auto_values(DeepSpeedConfig& config, Whole hidden,
                        const std::function<bool(std::string_view key)>& is_given);

}  // namespace lambcast::deepspeed
