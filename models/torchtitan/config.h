// A torchtitan job file (TOML) as what-if keys.
//
//   [model] name, flavor            a preset; converters = ["float8"] or "quantize.linear.float8",
//                                   also as one text: computes in fp8
//   [training] local_batch_size (batch_size), global_batch_size, seq_len, steps, compile,
//                                   mixed_precision_param, mixed_precision_reduce
//   [parallelism] tensor_parallel_degree, enable_async_tensor_parallel, pipeline_parallel_degree,
//                 pipeline_parallel_schedule, pipeline_parallel_microbatch_size,
//                 context_parallel_degree, expert_parallel_degree, data_parallel_shard_degree,
//                 data_parallel_replicate_degree, fsdp_reshard_after_forward
//   [activation_checkpoint] mode    selective repeats every second product
//   [compile] enable, components, [optimizer] name
//
// FSDP shards weights (stage 3). In pipelines it shards only gradients (2), and weights stay
// gathered over the micro batches of a step; fsdp_reshard_after_forward = "always" or "never"
// overrides this. A pipeline divides a rank's batch into micro batches of
// pipeline_parallel_microbatch_size.
//
// Sections and keys that do not affect the cost are ignored; an unknown one that is close to a
// known one is refused with a suggestion, any other becomes a finding. Source: torchtitan v0.2,
// torchtitan/config/job_config.py (names and defaults), distributed/parallel_dims.py.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/finding.h"
#include "models/key_ledger.h"

namespace lambcast::torchtitan {

struct Job {
  // Keys and values of a what-if, named like the flags. The model is the name of a preset, or
  // absent.
  std::vector<std::pair<std::string, std::string>> what_if;
  std::vector<Finding> findings;
  std::vector<LedgerEntry> ledger;  // keys as "training.steps"; unread sections as a whole
};

// Decodes a job file. Throws Error (usage) with file, line and key.
Job decode(std::string_view text, const std::string& file);

}  // namespace lambcast::torchtitan
