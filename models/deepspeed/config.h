// An unmodified DeepSpeed configuration file as typed data.
//
// Every value has DeepSpeed's default, and records whether (and on which line) the file sets it.
// Reading throws Error only for text that cannot be read. Settings that DeepSpeed would refuse at
// start-up or silently ignore become findings (rules.h), since a flag may still override them.
//
// Source: DeepSpeed 0.16.5 (runtime/config.py, runtime/constants.py) and 0.19.6.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/deepspeed/batch.h"
#include "models/deepspeed/elasticity.h"
#include "models/deepspeed/optimizer.h"
#include "models/deepspeed/release.h"
#include "models/deepspeed/section.h"
#include "models/finding.h"
#include "models/recipe/curriculum.h"
#include "models/recipe/precision.h"

namespace lambcast::deepspeed {

struct Fp16Config {
  Setting<bool> enabled{false};
  Setting<double> loss_scale{0};  // 0: dynamic
  Setting<Whole> initial_scale_power{16};
  Setting<Whole> loss_scale_window{1000};
  Setting<Whole> hysteresis{2};
  Setting<bool> consecutive_hysteresis{false};
  Setting<double> min_loss_scale{1};
  Setting<bool> auto_cast{false};
  Setting<bool> fp16_master_weights_and_grads{false};
};

struct ZeroConfig {
  Setting<Whole> stage{0};
  Setting<std::optional<bool>> overlap_comm;          // DeepSpeed: true at stage 3, else false
  Setting<Whole> reduce_bucket_size{500'000'000};     // elements
  Setting<Whole> allgather_bucket_size{500'000'000};  // elements
  Setting<bool> reduce_scatter{true};
  Setting<bool> contiguous_gradients{true};
  Setting<bool> use_multi_rank_bucket_allreduce{true};
  Setting<bool> round_robin_gradients{false};
  // Settings of stage 3 in elements, with these names or with "stage3_" in front.
  Setting<Whole> prefetch_bucket_size{50'000'000};
  Setting<Whole> param_persistence_threshold{100'000};
  Setting<Whole> max_live_parameters{1'000'000'000};
  Setting<Whole> max_reuse_distance{1'000'000'000};
  int offload_line = 0;  // line that enables unmodelled offloading; 0: none
};

struct DeepSpeedConfig {
  std::string file;                           // name of the file, for messages
  Setting<Version> release{release::newest};  // that reads the file; the file does not state it
  // The three batch numbers have no lines: resolve_batch() needs the world size, which is not in
  // the file.
  BatchNumbers batch;
  std::optional<Where> auto_batch;           // the first of the three with the value "auto"
  std::optional<OptimizerConfig> optimizer;  // absent: the training script creates one
  Fp16Config fp16;
  Setting<bool> bf16_enabled{false};
  std::optional<Where> auto_fp16, auto_bf16;  // `enabled` is "auto": see precision.h
  ZeroConfig zero;
  Setting<bool> zero_allow_untested_optimizer{false};
  Setting<double> gradient_clipping{0};  // 0: off
  Setting<bool> prescale_gradients{false};
  Setting<double> gradient_predivide_factor{1};
  Setting<std::optional<DataType>> communication_data_type;
  Setting<std::optional<DataType>> grad_accum_dtype;  // a value from data_types
  std::optional<Curriculum> curriculum;  // curriculum of the sequence length; absent if not enabled
  std::optional<Elasticity> elasticity;  // replaces `batch`; absent if not enabled
  // Divisions of the model that the file states, as what-if keys (parallelism.h).
  std::vector<std::pair<std::string, std::string>> layout;
  std::vector<Finding> findings;  // on the text: unknown keys, "auto", not modelled
};

// Throws Error (file:line:key) for text that is not HJSON, a value of the wrong type or out of
// range, an optimizer or backend that is not modelled, and an incomplete curriculum or elasticity.
DeepSpeedConfig parse_config(std::string_view text, const std::string& file);

// Reads the file at `path`. Throws Error if it cannot be read or is larger than 16 MiB.
DeepSpeedConfig load_config(const std::string& path);

}  // namespace lambcast::deepspeed
