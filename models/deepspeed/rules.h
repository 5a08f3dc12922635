// Consequences of a configuration in DeepSpeed: combinations that it refuses at start-up, settings
// that it silently ignores, and freeze steps with an unexpected effect.
//
// Source: DeepSpeed 0.16.5 and, where releases differ, those of release.h: runtime/engine.py
// (_do_sanity_check, _configure_basic_optimizer, allreduce_bucket), runtime/config.py,
// runtime/fp16/onebit/*.py; sentences of DeepSpeed are quoted as they stand there, so that a search
// for them leads to the source.
//
// Codes of severity error: fp16-with-bf16, onebit-with-zero, static-loss-scale, max-grad-norm,
// amsgrad, untested-zero-optimizer, unknown-optimizer-param, fp16-master-weights, grad-accum-dtype,
// curriculum-zero-length, batch-beside-elasticity.
#pragma once

#include <cstdint>
#include <vector>

#include "models/deepspeed/config.h"
#include "models/finding.h"

namespace lambcast::deepspeed {

// The findings of the file (config.findings) and those of its combinations. Call it once flags
// have overridden the file, and pass the result to refuse_errors() to insist.
std::vector<Finding> check_config(const DeepSpeedConfig& config);

// Returns findings that depend on the number of optimizer steps of the run (> 0).
std::vector<Finding> check_run(const DeepSpeedConfig& config, std::int64_t total_steps);

}  // namespace lambcast::deepspeed
