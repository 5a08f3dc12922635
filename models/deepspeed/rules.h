// Consequences of a configuration in DeepSpeed: combinations that it refuses at start-up, settings
// that it silently ignores, and freeze steps with an unexpected effect.
//
// Source: DeepSpeed 0.16.5 and, if releases differ, those of release.h: runtime/engine.py
// (_do_sanity_check, _configure_basic_optimizer, allreduce_bucket), runtime/config.py,
// runtime/fp16/onebit/*.py. Messages of DeepSpeed are quoted literally, so that searching for them
// finds the source.
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

// Returns the findings of the file (config.findings) and those about combinations of its keys. Call
// it after flags have overridden the file; refuse_errors() throws if one is an error.
std::vector<Finding> check_config(const DeepSpeedConfig& config);

// Returns findings that depend on the number of optimizer steps of the run (> 0).
std::vector<Finding> check_run(const DeepSpeedConfig& config, std::int64_t total_steps);

}  // namespace lambcast::deepspeed
