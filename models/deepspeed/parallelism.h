// Sections that divide the model or its activations among ranks, or recompute: where they change
// what a step costs, a forecast without them would be of another run.
//
//   pipeline                  refused unless it is empty, or holds no more than DeepSpeed's
//   defaults
//                             and one stage
//   tensor_parallel           refused with a size (autotp_size, tp_size) above 1
//   sequence_parallel_size    refused above 1
//   activation_checkpointing  says how a script that recomputes does it, not whether: refused where
//                             it copies checkpoints to the host (cpu_checkpointing) or spaces them
//                             (number_checkpoints); partition_activations divides them among
//                             tensor-parallel ranks, of which there is one here
//
// Source: DeepSpeed 0.16.5, runtime/config.py (get_pipeline_config),
// runtime/tensor_parallel/config.py, runtime/activation_checkpointing/config.py.
#pragma once

#include "models/deepspeed/section.h"

namespace lambcast::deepspeed {

// Throws Error naming the key of `root` there is no model of; adds findings about the others.
void check_parallelism(const Section& root);

}  // namespace lambcast::deepspeed
